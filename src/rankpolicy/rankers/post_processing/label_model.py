"""A predictive distribution of labels, learned from predictions that were made out of fold."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]

LABEL_MODELS = ("auto", "binary", "neighbours", "residuals")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelModel:
    """P(label | predicted relevance r, group): what labels did items of similar predictions turn out to have?

    - "binary": P(label = 1) = r, cut to [0, 1];
    - "neighbours": the labels of the nearest predictions in the group, equally likely;
    - "residuals": r plus the errors (label - prediction) of these, cut to the range of labels: real labels, and means that follow r.
    """

    kind: str  # one of the three
    predictions: Floats  # relevances that were predicted out of fold (row,)
    labels: Floats  # the labels of these items (row,)
    # the groups of these items (row,), as numbers. An item of a group that is not among them has neighbours in all
    # groups
    codes: NDArray[np.int64]
    # how many neighbours, counted in different predictions: where items recur in many queries, so do their
    # predictions
    num_neighbours: int
    _sorted: dict[int, tuple[NDArray[np.int64], int]] = field(default_factory=dict, init=False)

    def probabilities(self, relevances: Floats) -> Floats:
        """P(label = 1) of binary labels."""
        return np.clip(relevances, 0.0, 1.0)

    def quantiles(self, relevances: Floats, codes: NDArray[np.int64], levels: Floats) -> Floats:
        """Quantiles of the labels of each item at given levels, in the shape of levels (item, level)."""
        if self.kind == "binary":
            return (levels > 1 - self.probabilities(relevances)[:, None]).astype(np.float64)
        quantiles = np.empty(levels.shape)
        for code in np.unique(codes):
            rows, count = self._rows_by_prediction(int(code))
            members = np.flatnonzero(codes == code)
            near = rows[_nearest(self.predictions[rows], relevances[members], count)]
            quantiles[members] = self._of_neighbours(near, relevances[members], levels[members])
        return quantiles

    def _rows_by_prediction(self, code: int) -> tuple[NDArray[np.int64], int]:
        """The rows of a group, or all if it has none, by ascending prediction; and how many of them are neighbours."""
        if code not in self._sorted:
            of_group = self.codes == code
            rows = np.flatnonzero(of_group) if of_group.any() else np.arange(len(self.labels))
            rows = rows[np.argsort(self.predictions[rows], kind="stable")]
            count = round(self.num_neighbours * len(rows) / len(np.unique(self.predictions[rows])))
            self._sorted[code] = rows, count
        return self._sorted[code]

    def _of_neighbours(self, near: NDArray[np.int64], relevances: Floats, levels: Floats) -> Floats:
        rank = np.minimum((levels * near.shape[1]).astype(np.int64), near.shape[1] - 1)
        if self.kind == "neighbours":
            return np.take_along_axis(np.sort(self.labels[near], axis=1), rank, axis=1)
        errors = np.sort(self.labels[near] - self.predictions[near], axis=1)
        shifted = relevances[:, None] + np.take_along_axis(errors, rank, axis=1)
        return np.clip(shifted, max(0.0, self.labels.min()), self.labels.max())

    def without(self, rows: NDArray[np.bool_]) -> LabelModel:
        """The distribution that is learned without some rows."""
        if rows.all():
            return self
        return LabelModel(
            kind=self.kind,
            predictions=self.predictions[~rows],
            labels=self.labels[~rows],
            codes=self.codes[~rows],
            num_neighbours=self.num_neighbours,
        )

    def to_bytes(self) -> bytes:
        """All of it but the number of neighbours, as JSON."""
        return json.dumps(
            {
                "kind": self.kind,
                "predictions": self.predictions.tolist(),
                "labels": self.labels.tolist(),
                "codes": self.codes.tolist(),
            }
        ).encode()

    @classmethod
    def from_bytes(cls, content: bytes, *, num_neighbours: int) -> LabelModel:
        """Read what ``to_bytes`` wrote; refuses what it did not write."""
        state = json.loads(content)
        numbers = [np.array(state[name], dtype=np.float64) for name in ("predictions", "labels", "codes")]
        same_shape = len({array.shape for array in numbers}) == 1 and numbers[0].ndim == 1 and len(numbers[0]) > 0
        if state["kind"] not in LABEL_MODELS[1:] or not same_shape or not all(np.isfinite(x).all() for x in numbers):
            raise RankPolicyError(
                "the label model in the file must hold finite predictions, labels and groups, as many of each. "
                "Copy or train the model again."
            )
        predictions, labels, codes = numbers
        return cls(
            kind=state["kind"],
            predictions=predictions,
            labels=labels,
            codes=codes.astype(np.int64),
            num_neighbours=num_neighbours,
        )


@lru_cache(maxsize=256)
def sample_levels(num_items: int, num_samples: int, seed: int) -> Floats:
    """Levels (item, sample) of a Latin hypercube (McKay et al. 1979): each item has one level in each of num_samples equal intervals.

    So the samples of an item have nearly the mean of its distribution, and different items are independent.
    """
    generator = np.random.default_rng((seed, num_items))
    orders = generator.permuted(np.tile(np.arange(num_samples), (num_items, 1)), axis=1)
    levels: Floats = (orders + 0.5) / num_samples
    levels.flags.writeable = False
    return levels


def _nearest(predictions: Floats, relevances: Floats, count: int) -> NDArray[np.int64]:
    """Places (asked, count) of the nearest among sorted numbers; all of them if there are not more.

    >>> _nearest(np.array([0.0, 1.0, 2.0, 9.0]), np.array([8.0]), 2).tolist()
    [[3, 2]]
    """
    count = min(count, len(predictions))
    width = min(2 * count, len(predictions))
    first = np.clip(np.searchsorted(predictions, relevances) - count, 0, len(predictions) - width)
    window = first[:, None] + np.arange(width)
    order = np.argsort(np.abs(predictions[window] - relevances[:, None]), axis=1, kind="stable")[:, :count]
    return np.take_along_axis(window, order, axis=1)
