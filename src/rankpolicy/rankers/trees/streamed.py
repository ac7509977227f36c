"""Boosted trees on features that stay on disk: every pass reads the stored codes block by block, and only a few numbers per item are kept.

LightGBM holds all bins in memory, one byte per value. The codes of stored features are such bins already, so trees are grown on them where
they are: leaf by leaf, as LightGBM does it, with one histogram of gradients per leaf. A split reads the items of one leaf and adds up the
histogram of its smaller part; that of the other part is the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.data.stored.pages import MappedPages, new_numbers, parts_of
from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.kernels.limits import MOST_LEAVES
from rankpolicy.rankers.trees.grown_tree import GrownTree

_BYTES_OF_A_BLOCK = 1 << 24
Floats = NDArray[np.float32]

# From scores (items,) to gradient and Hessian (items,).
Gradients = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSettings:
    """What a tree is grown by; the names are those of ``TreeRanker``."""

    num_leaves: int
    learning_rate: float
    min_items_in_leaf: int
    min_hessian_in_leaf: float
    feature_fraction: float
    bagging_fraction: float
    l2: float


def can_be_streamed(features: object, num_leaves: int) -> bool:
    """Whether trees can be grown on these features where they are: on codes of one byte, with compiled kernels.

    Parameters
    ----------
    features
        The features of a dataset.
    num_leaves
        Leaves per tree.
    """
    return (
        HAS_NUMBA
        and isinstance(features, StoredFeatures)
        and features.codes.dtype == np.uint8
        and num_leaves <= MOST_LEAVES
    )


@dataclass(eq=False)
class _Leaf:
    """A leaf that may still be split."""

    gradient: float
    hessian: float
    num_items: int
    histogram: NDArray[np.float64]  # (features, codes, 2)


@dataclass(eq=False)
class StreamedTrees:
    """Trees in training.

    Parameters
    ----------
    features
        Stored features of the training data.
    settings
        How trees are grown.
    gradients
        The loss.
    start
        The score before the first tree.
    seed
        Seed of the items and features drawn for each tree.
    """

    features: StoredFeatures
    settings: TreeSettings
    gradients: Gradients
    start: float
    seed: int
    trees: list[GrownTree] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._scores = new_numbers(len(self.features), np.float32, beside=self.features.codes)
        for part in parts_of(self._scores):
            part[:] = self.start
        self._leaves = np.zeros(len(self.features), np.uint8)
        self._generator = np.random.default_rng(self.seed)

    def add_tree(self) -> GrownTree | None:
        """Grow one more tree; None where no feature splits the items."""
        gradient, hessian = self.gradients(self._scores)
        tree = self._grown(gradient, hessian, int(self._generator.integers(1 << 62)), self._drawn_features())
        if tree.num_leaves == 1:
            return None
        leaf_values = tree.leaf_values.astype(np.float32)
        for scores, leaves in zip(parts_of(self._scores), parts_of(self._leaves), strict=True):
            scores += leaf_values[leaves]
        if not self.trees:
            tree = tree.raised_by(self.start)
        self.trees.append(tree)
        return tree

    def _drawn_features(self) -> NDArray[np.int64]:
        num_features = self.features.shape[1]
        count = max(1, round(self.settings.feature_fraction * num_features))
        return np.sort(self._generator.choice(num_features, count, replace=False))

    def _grown(self, gradient: Floats, hessian: Floats, seed: int, chosen: NDArray[np.int64]) -> GrownTree:
        from rankpolicy.kernels.trees import best_split

        settings, num_codes = self.settings, self.features.values.shape[1] - 1
        tree = GrownTree(self.features.values, settings.learning_rate, settings.l2)
        self._leaves[:] = 0
        columns = self.features.columns[chosen]

        def split_of(leaf: _Leaf):  # type: ignore[no-untyped-def]
            return best_split(
                leaf.histogram,
                np.arange(len(chosen)),
                num_codes,
                gradient=leaf.gradient,
                hessian=leaf.hessian,
                num_items=leaf.num_items,
                min_items=settings.min_items_in_leaf,
                min_hessian=settings.min_hessian_in_leaf,
                l2=settings.l2,
            )

        histogram, num_items = self._histogram(gradient, hessian, seed, columns, leaf=0)
        total_gradient, total_hessian = histogram[0].sum(0).tolist()  # every item has a code in every feature
        root = _Leaf(total_gradient, total_hessian, num_items, histogram)
        leaves = {0: root}
        splits = {0: split_of(root)}
        tree.start(root.gradient, root.hessian, root.num_items)
        while tree.num_leaves < settings.num_leaves:
            number = max(splits, key=lambda each: splits[each].gain)
            leaf, split = leaves[number], splits[number]
            if split.gain <= 0:
                break
            right = tree.num_leaves
            is_left_smaller = split.hessian * 2 <= leaf.hessian
            is_last = right + 1 == settings.num_leaves
            cut = (number, right, int(columns[split.feature]), split.code, num_codes, split.missing_left)
            smaller, num_smaller = self._histogram(
                gradient, hessian, seed, columns, leaf=number if is_left_smaller else right, cut=cut, is_counted=is_last
            )
            parts = {number: (split.gradient, split.hessian)}
            parts[right] = (leaf.gradient - split.gradient, leaf.hessian - split.hessian)
            small = number if is_left_smaller else right
            counts = {each: num_smaller if each == small else leaf.num_items - num_smaller for each in parts}
            if not is_last:
                leaf.histogram -= smaller
            for each, (own_gradient, own_hessian) in parts.items():
                own = smaller if each == small else leaf.histogram
                leaves[each] = _Leaf(own_gradient, own_hessian, counts[each], own)
            tree.split(number, int(chosen[split.feature]), split, parts, counts, num_codes=num_codes)
            if not is_last:
                splits |= {each: split_of(leaves[each]) for each in parts}
        return tree

    def _histogram(
        self,
        gradient: Floats,
        hessian: Floats,
        seed: int,
        columns: NDArray[np.int64],
        *,
        leaf: int,
        cut: tuple[int, int, int, int, int, bool] | None = None,
        is_counted: bool = False,
    ) -> tuple[NDArray[np.float64], int]:
        """Cut a leaf, and add up the histogram of a leaf (features, codes, 2) and its number of drawn items; in one pass."""
        from rankpolicy.kernels.trees import NUM_CODES, add_histogram, cut_leaf, drawn_rows

        found, num_items = np.zeros((0 if is_counted else len(columns), NUM_CODES, 2)), 0
        pages = MappedPages(gradient, hessian)
        for start, codes in blocks_of_codes(self.features):
            part = slice(start, start + len(codes))
            leaves = self._leaves[part]
            if cut is not None:
                cut_leaf(codes, leaves, *cut)
            rows = drawn_rows(leaves, leaf=leaf, seed=seed, share=self.settings.bagging_fraction, first=start)
            num_items += len(rows)
            if not is_counted:
                add_histogram(codes, rows, gradient[part], hessian[part], columns, found)
                pages.touched(gradient[part].nbytes + hessian[part].nbytes)
        pages.release()
        return found, num_items


def blocks_of_codes(features: StoredFeatures) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """The stored codes (items, stored columns) of all items in order, some at a time, and the number of the first of them.

    Parameters
    ----------
    features
        The stored features.
    """
    size = max(1, _BYTES_OF_A_BLOCK // features.codes.shape[1])
    for start in range(0, len(features), size):
        block = features[start : start + size]
        yield start, block.stored_codes()
        block.were_read()


def add_scores(tree: GrownTree, features: StoredFeatures, scores: NDArray[np.float64]) -> None:
    """Add what a tree gives each item.

    Parameters
    ----------
    tree
        The tree.
    features
        Stored features of the items.
    scores
        Their scores (items,), changed in place.
    """
    from rankpolicy.kernels.trees import follow_tree

    nodes = tree.nodes()
    for start, codes in blocks_of_codes(features):
        leaves = np.empty(len(codes), np.uint8)
        follow_tree(codes, features.columns, nodes, leaves)
        scores[start : start + len(codes)] += tree.leaf_values[leaves]
