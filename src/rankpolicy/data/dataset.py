"""RankingDataset: queries, their items, and what is known about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arguments import as_array, checked_kinds
from rankpolicy.data.click_evidence import LABEL_KINDS, ClickEvidence, LabelKind
from rankpolicy.data.click_table.shown import Shown
from rankpolicy.data.click_table.side_columns import SideColumns
from rankpolicy.data.rows_of_queries import rows_of_queries
from rankpolicy.data.sparse import SparseFeatures
from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.data.stored.pages import MappedPages, first_of_range, parts_of, taken
from rankpolicy.data.texts.texts import Texts
from rankpolicy.display import html_block, html_table
from rankpolicy.types import RankPolicyError, unknown_name

if TYPE_CHECKING:
    from torch import Tensor

    from rankpolicy.data.padding import Padding

_QUERIES_AT_ONCE = 1 << 15
_PER_ITEM = ("labels", "source_rows", "item_ids", "groups")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankingDataset:
    """The items of many queries, stored query by query: query q owns rows ``offsets[q]:offsets[q + 1]``.

    The arrays of a dataset are the one place where items stand query by query. Whatever goes in or comes out beside a dataset with one
    value per item (predicted scores, exposures, scores to evaluate, protected groups, frames) is in the order of the rows that the dataset
    was made from: ``frame["score"] = ranker.predict(from_frame(frame))`` is right however the queries are mixed. A part of a dataset keeps
    ``source_rows`` and their order; a dataset that holds a row more than once (a session or a drawn query each time) is its own order.
    ``in_source_order`` and ``in_query_order`` convert between the two.

    Made by ``from_arrays``, ``from_frame``, ``from_click_table`` and the readers (``read_letor``, ``read_parquet``, ...). All values are
    checked when the dataset is made; the arrays are read-only.

    Parameters
    ----------
    features
        One row per item, shape (items, features), float32, or ``SparseFeatures`` or ``StoredFeatures`` in its place; NaN is a missing
        value. No columns where items have texts only.
    labels
        One number per item, 0 or more; ``label_kind`` says what they mean.
    offsets
        Where each query starts, and the number of items at the end, shape (queries + 1,).
    query_ids
        One id per query.
    source_rows
        Row of each item in the file, frame or array it came from.
    item_ids
        One id per item, unique within its query.
    groups
        Protected group of each item.
    feature_names
        Names of the feature columns.
    categories
        For categorical feature columns: the categories by the name of the column. ``features`` then holds the place of each item's category
        among them, NaN where it is missing.
    texts
        Texts of queries and items, for rankers that read texts.
    side
        Further columns about the items (numbers and categories), for rankers that read texts.
    shown
        Rank at which each item was shown, and user and time of each query, for click tables.
    query_weights
        Weight of each query in losses and means, 0 or more; None: all queries count the same.
    label_kind
        What the labels mean. "grades": judged relevance, 0, 1, 2, ... "clicks": 1 where the user clicked, else 0. "relevances": relevance
        estimated from clicks, any number from 0. "none": there are no labels, all are 0; such data can be ranked, but neither learned from
        nor measured. ``dataset_from_clicks``, ``weighted_by_propensity`` and the readers set it; rankers and metrics decide by it what they
        can compute.
    click_evidence
        How many clicks the labels were made from, where they were made from clicks. It describes the whole dataset; a part of it has None.

    >>> from rankpolicy.data.arrays import from_arrays
    >>> dataset = from_arrays([[0.5], [0.1], [0.9]], [1, 0, 2], qid=["a", "b", "a"])
    >>> dataset
    RankingDataset(queries=2, items=3, features=1, labels 0..2)
    >>> dataset.features[:, 0], dataset.query_ids.tolist(), dataset.source_rows.tolist()
    (array([0.5, 0.9, 0.1], dtype=float32), ['a', 'b'], [0, 2, 1])
    """

    features: NDArray[np.float32]  # (items, features)
    labels: NDArray[np.float32]  # (items,)
    offsets: NDArray[np.int64]  # (queries + 1,)
    query_ids: NDArray[Any]  # (queries,) str
    source_rows: NDArray[np.int64]  # (items,)
    item_ids: NDArray[Any] | None = None  # (items,) str
    groups: NDArray[Any] | None = None  # (items,)
    feature_names: tuple[str, ...] | None = None
    texts: Texts | None = None
    side: SideColumns | None = None
    shown: Shown | None = None
    query_weights: NDArray[np.float64] | None = None  # (queries,)
    label_kind: LabelKind = "grades"
    click_evidence: ClickEvidence | None = None
    categories: dict[str, tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        if self.label_kind == "none" and np.any(self.labels):  # labels were put in, as by dataclasses.replace
            object.__setattr__(self, "label_kind", "grades")
        _check_dataset(self)
        for name in (*_PER_ITEM, "features", "offsets", "query_ids", "query_weights"):
            array = getattr(self, name)
            if isinstance(array, np.ndarray):
                view = array.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    @property
    def num_queries(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_items(self) -> int:
        return len(self.labels)

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of items of each query (queries,)."""
        return np.diff(self.offsets)

    @property
    def query_of_item(self) -> NDArray[np.int64]:
        """Index of the query each item belongs to (items,)."""
        return np.repeat(np.arange(self.num_queries), self.sizes)

    def __len__(self) -> int:
        return self.num_queries

    def __repr__(self) -> str:
        texts = "" if self.texts is None else "texts, "
        labels = "labels" if self.label_kind == "grades" else self.label_kind
        weighted = "" if self.query_weights is None else ", weighted"
        known = "no labels" if self.label_kind == "none" else f"{labels} {self.labels.min():g}..{self.labels.max():g}"
        return (
            f"RankingDataset(queries={self.num_queries}, items={self.num_items}, features={self.num_features}, {texts}"
            f"{known}{weighted})"
        )

    def _repr_html_(self) -> str:
        sizes = self.sizes
        facts = {
            "queries": self.num_queries,
            "items": f"{self.num_items} ({sizes.min()} to {sizes.max()} per query, median {np.median(sizes):g})",
            "features": self.num_features,
            "labels": "none",
        }
        if self.label_kind != "none":
            facts["labels"] = (
                f"{self.label_kind}, {self.labels.min():g} to {self.labels.max():g}; "
                f"{(self.labels > 0).mean():.1%} of the items above 0"
            )
            facts["queries without a label above 0"] = int((~self.has_relevant_items(1e-9)).sum())
        optional = ("item_ids", "groups", "feature_names", "texts", "side", "shown", "query_weights")
        facts["also has"] = ", ".join(name for name in optional if getattr(self, name) is not None) or "nothing"
        return html_block("RankingDataset", html_table(facts.items()))

    def __getitem__(self, queries: int | slice | Sequence[int] | NDArray[Any]) -> RankingDataset:
        """The dataset of these queries: an index, a slice, a list of indices or a boolean array over queries."""
        if not isinstance(queries, int | np.integer | slice | Sequence | np.ndarray):
            raise IndexError(
                f"queries must be an index, a slice, a list of indices or a boolean array; got {queries!r}."
            )
        wanted = [queries] if isinstance(queries, int | np.integer) else queries
        index = wanted if isinstance(wanted, slice) else as_array("queries", wanted)
        is_empty = not isinstance(index, slice) and index.size == 0
        chosen = np.arange(self.num_queries)[slice(0) if is_empty else index]
        if chosen.ndim != 1:
            raise IndexError(f"queries must be one list of indices; got an array of shape {chosen.shape}.")
        if len(chosen) == 0:
            raise RankPolicyError(
                f"a dataset needs at least one query; {queries!r} selects none of the {self.num_queries}."
            )
        sizes = self.sizes[chosen]
        codes = self.features.codes if isinstance(self.features, StoredFeatures) else None
        rows: Any
        if codes is not None and isinstance(index, slice) and index.step in (None, 1):
            # Views instead of copies: of data bigger than memory even one number per row is much.
            rows = slice(int(self.offsets[chosen[0]]), int(self.offsets[chosen[-1] + 1]))
            labels, source_rows = self.labels[rows], self.source_rows[rows]
        else:
            rows = rows_of_queries(self.offsets, chosen, beside=codes)
            first = first_of_range(self.source_rows)
            numbers = self.source_rows if first is None else range(first, first + self.num_items)
            labels, source_rows = (taken(each, rows, beside=codes) for each in (self.labels, numbers))
        return RankingDataset(
            features=self.features[rows],
            labels=labels,
            offsets=np.concatenate([[0], np.cumsum(sizes)]),
            query_ids=self.query_ids[chosen],
            source_rows=source_rows,
            item_ids=None if self.item_ids is None else self.item_ids[rows],
            groups=None if self.groups is None else self.groups[rows],
            feature_names=self.feature_names,
            texts=None if self.texts is None else self.texts.take(chosen, rows),
            side=None if self.side is None else self.side.take(rows),
            shown=None if self.shown is None else self.shown.take(chosen, rows),
            query_weights=None if self.query_weights is None else self.query_weights[chosen],
            label_kind=self.label_kind,
            categories=self.categories,
        )

    def padding(self) -> Padding:
        """How flat values of the items become padded ``(query, item)`` tensors."""
        from rankpolicy.data.padding import Padding  # here: a dataset itself needs no torch

        return Padding.of_sizes(self.sizes)

    def padded_labels(self) -> tuple[Tensor, Tensor]:
        """Labels and mask, both (query, item)."""
        import torch

        padding = self.padding()
        return padding.pad(torch.from_numpy(self.labels.copy())), padding.mask

    @checked_kinds
    def has_relevant_items(self, relevant_from: float = 1.0) -> NDArray[np.bool_]:
        """Which queries have an item whose label is at least ``relevant_from`` (queries,).

        Parameters
        ----------
        relevant_from
            The lowest label that counts as relevant.
        """
        is_relevant, pages = np.empty(self.num_queries, bool), MappedPages(self.labels)
        for first in range(0, self.num_queries, _QUERIES_AT_ONCE):
            starts = self.offsets[first : first + _QUERIES_AT_ONCE + 1]
            labels = self.labels[starts[0] : starts[-1]]
            highest = np.maximum.reduceat(labels, starts[:-1] - starts[0])
            is_relevant[first : first + len(highest)] = highest >= relevant_from
            pages.touched(labels.nbytes)
        pages.release()
        return is_relevant

    @checked_kinds
    def drop_queries_without_relevant_items(self, relevant_from: float = 1.0) -> tuple[RankingDataset, int]:
        """The queries that have a relevant item, and how many queries were dropped.

        Parameters
        ----------
        relevant_from
            The lowest label that counts as relevant.
        """
        kept = self.has_relevant_items(relevant_from)
        if not kept.any():
            raise RankPolicyError(
                f"no query has an item with label >= {relevant_from:g} (the highest label is {self.labels.max():g}). "
                "Check the labels, or lower relevant_from."
            )
        # Without a copy of the features where nothing is dropped.
        return (self, 0) if kept.all() else (self[kept], int((~kept).sum()))

    def in_source_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the items in the order of the rows that the dataset was made from: the order in which rankers give scores.

        Parameters
        ----------
        values
            One value (or row of values) per item, query by query, as the arrays of the dataset are.

        >>> from rankpolicy.data.arrays import from_arrays
        >>> dataset = from_arrays([[0.5], [0.1], [0.9]], qid=["a", "b", "a"])
        >>> dataset.in_source_order(dataset.features[:, 0])
        array([0.5, 0.1, 0.9], dtype=float32)
        """
        order = self._source_order()
        return values if order is None else values[order]

    def in_query_order(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the items query by query, as the arrays of the dataset are; the inverse of ``in_source_order``.

        Parameters
        ----------
        values
            One value (or row of values) per item, in the order of the rows that the dataset was made from.
        """
        return values if self._source_order() is None else values[self.row_numbers()]

    def row_numbers(self) -> NDArray[np.int64]:
        """Place of each item (items,) in the order of the rows that the dataset was made from; for a whole dataset its ``source_rows``."""
        numbers, order = np.arange(self.num_items), self._source_order()
        if order is not None:
            numbers[order] = np.arange(self.num_items)
        return numbers

    def _source_order(self) -> NDArray[np.int64] | None:
        """Items by their source row; None where this is the order of the dataset."""
        if (self.source_rows[1:] >= self.source_rows[:-1]).all():
            return None
        order = np.argsort(self.source_rows, kind="stable")
        return order if (np.diff(self.source_rows[order]) > 0).all() else None


def _check_dataset(data: RankingDataset) -> None:
    """Refuse parts whose shapes or values do not fit together."""
    if data.features.ndim != 2:
        raise RankPolicyError(f"features must be a matrix (items, features); got shape {data.features.shape}.")
    num_items = len(data.features)
    if num_items == 0 or len(data.offsets) < 2:
        raise RankPolicyError("a dataset needs at least one query with one item; got none.")
    for name in _PER_ITEM:
        array = getattr(data, name)
        if array is not None and array.shape != (num_items,):
            raise RankPolicyError(
                f"{name} must have one value per row of features, shape ({num_items},); got {array.shape}."
            )
    if data.offsets[0] != 0 or data.offsets[-1] != num_items or (np.diff(data.offsets) < 1).any():
        raise RankPolicyError(f"offsets must increase from 0 to the number of items, {num_items}, with no empty query.")
    if data.query_ids.shape != (len(data.offsets) - 1,):
        raise RankPolicyError(
            f"query_ids must have one id per query, shape ({len(data.offsets) - 1},); got {data.query_ids.shape}."
        )
    if data.feature_names is not None and len(data.feature_names) != data.features.shape[1]:
        raise RankPolicyError(
            f"feature_names must name {data.features.shape[1]} features; got {len(data.feature_names)}."
        )
    if data.texts is not None and (len(data.texts.queries), len(data.texts.of_item)) != (data.num_queries, num_items):
        raise RankPolicyError(
            f"texts must hold one text per query and one per item, {data.num_queries} and {num_items}; "
            f"got {len(data.texts.queries)} and {len(data.texts.of_item)}."
        )
    if data.side is not None and not data.side.lengths() <= {num_items}:
        raise RankPolicyError(
            f"side columns must have one value per item, {num_items}; got {sorted(data.side.lengths())}."
        )
    if data.shown is not None:
        _check_shown(data.shown, data.num_queries, num_items)
    weights = data.query_weights
    if weights is not None and (
        weights.shape != (data.num_queries,) or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any()
    ):
        raise RankPolicyError(
            f"query_weights must be finite, 0 or more and not all 0, one for each of {data.num_queries} queries; "
            f"got shape {weights.shape}, {weights!r:.60}."
        )
    _check_finite(data)
    _check_label_kind(data)


def _check_shown(shown: Shown, num_queries: int, num_items: int) -> None:
    for name, length in (("ranks", num_items), ("users", num_queries), ("times", num_queries)):
        values = getattr(shown, name)
        if values is not None and values.shape != (length,):
            raise RankPolicyError(f"the {name} of shown lists must have the shape ({length},); got {values.shape}.")
    if shown.ranks is not None and shown.ranks.min() < 1:
        raise RankPolicyError(f"ranks of shown items count from 1; got {int(shown.ranks.min())}.")


def _check_label_kind(data: RankingDataset) -> None:
    if data.label_kind not in LABEL_KINDS:
        raise RankPolicyError(unknown_name("label kind", data.label_kind, LABEL_KINDS))
    if data.label_kind == "clicks" and not all(((part == 0) | (part == 1)).all() for part in parts_of(data.labels)):
        raise RankPolicyError(
            f"labels that are clicks must be 0 or 1; the highest is {data.labels.max():g}. "
            "Use label_kind='grades' for grades, 'relevances' for relevances estimated from clicks."
        )


def _infinite_values(features: NDArray[np.float32]) -> NDArray[np.int64]:
    """Row and column (places, 2) of the infinite values."""
    if isinstance(features, SparseFeatures):
        return features.places_where(np.isinf)
    if isinstance(features, StoredFeatures):  # checked when they were stored
        return np.empty((0, 2), np.int64)
    infinite = np.isinf(features)
    return np.argwhere(infinite) if infinite.any() else np.empty((0, 2), np.int64)


def _check_finite(data: RankingDataset) -> None:
    infinite = _infinite_values(data.features)
    if len(infinite):
        item, feature = infinite[0]
        raise RankPolicyError(
            f"features must be finite, or NaN where a value is missing; row {int(data.source_rows[item])}, feature {int(feature)} is "
            f"{data.features[item, feature]}. Scale or clip values beyond 3.4e38, which float32 cannot hold."
        )
    # NaN is neither.
    if not all(part.min() >= 0 and part.max() < np.inf for part in parts_of(data.labels)):
        item = int(np.argwhere(~(np.isfinite(data.labels) & (data.labels >= 0)))[0, 0])
        raise RankPolicyError(
            f"labels must be grades of relevance, finite and 0 or more; row {int(data.source_rows[item])} has "
            f"{data.labels[item]:g}. "
            "Shift or map them to 0, 1, 2, ..."
        )


def check_has_labels(dataset: RankingDataset, what: str) -> None:
    """Refuse data without labels, on which every metric would be 0.

    Parameters
    ----------
    dataset
        The data.
    what
        What it is for, for error messages.
    """
    if dataset.label_kind == "none":
        raise RankPolicyError(
            f"{what} must have labels; it has none. Give the labels with the data, such as from_arrays(X, y, qid=qid)."
        )
