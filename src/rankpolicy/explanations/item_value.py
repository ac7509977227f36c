"""What an item is worth to a ranker, its score or its expected rank, if it had other features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import to_numpy
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

Rows = NDArray[np.float32]  # (world, feature)
_MOST_CELLS = 1 << 22  # of features that are scored at once


class ItemValue:
    """The score or the expected rank of one item of a query, as a function of its features.

    The expected rank of item i under a Plackett-Luce policy is 1 + sum over the other items j of sigmoid(s_j - s_i); 1 is the top.
    """

    def __init__(self, ranker: Ranker, query: RankingDataset, item: int, over: int | None, *, of: str) -> None:
        self._ranker, self._query, self._of = ranker, query, of
        self._item, self._over = item, over
        self.actual = self._of_all(query)[0]  # (item,)
        self._log_weights = None
        if of == "expected_rank" and not ranker._needs_queries:
            policy = ranker._policy_of(query)
            if isinstance(policy, PlackettLuce):
                self._log_weights = to_numpy(policy.scores[0]).astype(np.float64)

    def __call__(
        self, item_rows: Rows, other_rows: Rows | None = None, *, swaps_groups: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """The value of the item in each of several worlds (world,)."""
        by_item = not self._ranker._needs_queries and (self._of == "score" or self._log_weights is not None)
        size = len(self._query.features_by_query)
        step = max(1, _MOST_CELLS // (item_rows.shape[1] * (2 if by_item else size)))
        values = []
        for start in range(0, len(item_rows), step):
            block = slice(start, start + step)
            other_block = None if other_rows is None else other_rows[block]
            if by_item:
                values.append(self._by_item(item_rows[block], other_block))
            else:
                swaps = None if swaps_groups is None else swaps_groups[block]
                values.append(self._by_query(item_rows[block], other_block, swaps))
        return np.concatenate(values)

    def _by_item(self, item_rows: Rows, other_rows: Rows | None) -> NDArray[np.float64]:
        """Where a score depends on the item alone, only the changed items are scored."""
        if self._of == "score":
            return np.asarray(self._ranker._scores(_one_query(self._query, item_rows)), np.float64)
        assert self._log_weights is not None
        rows = item_rows if other_rows is None else np.concatenate([item_rows, other_rows])
        policy = self._ranker._policy_of(_one_query(self._query, rows))
        assert isinstance(policy, PlackettLuce)
        changed = to_numpy(policy.scores[0]).astype(np.float64)
        item_scores = changed[: len(item_rows), None]
        unchanged = [index for index in range(len(self._log_weights)) if index not in (self._item, self._over)]
        ranks = 1 + _sigmoid(self._log_weights[unchanged] - item_scores).sum(axis=1)
        if self._over is not None:
            other_scores = self._log_weights[self._over] if other_rows is None else changed[len(item_rows) :, None]
            ranks += _sigmoid(other_scores - item_scores)[:, 0]
        return np.asarray(ranks)

    def _by_query(
        self, item_rows: Rows, other_rows: Rows | None, swaps: NDArray[np.bool_] | None
    ) -> NDArray[np.float64]:
        """Where a score depends on the whole query, the query is ranked once per world."""
        query, size = self._query, self._query.num_items
        features = np.repeat(query.features_by_query[None], len(item_rows), axis=0)
        features[:, self._item] = item_rows
        if other_rows is not None:
            features[:, self._over] = other_rows
        groups = (
            None if query.groups_by_query is None else np.repeat(query.groups_by_query[None], len(item_rows), axis=0)
        )
        if query.groups_by_query is not None and groups is not None and swaps is not None and self._over is not None:
            item, over = query.groups_by_query[self._item], query.groups_by_query[self._over]
            groups[swaps, self._item], groups[swaps, self._over] = over, item
        worlds = _dataset(
            query,
            features.reshape(-1, features.shape[2]),
            np.arange(len(item_rows) + 1) * size,
            groups=None if groups is None else groups.reshape(-1),
        )
        return self._of_all(worlds)[:, self._item]

    def _of_all(self, dataset: RankingDataset) -> NDArray[np.float64]:
        """The value of every item of queries of one length (query, item)."""
        size = int(dataset.sizes[0])
        if self._of == "score":
            return np.asarray(self._ranker._scores(dataset), np.float64).reshape(-1, size)
        policy = self._ranker._policy_of(dataset)
        if not isinstance(policy, PlackettLuce):
            return np.asarray(policy.exposure(np.arange(1.0, size + 1)), np.float64)
        scores = to_numpy(policy.scores).astype(np.float64)
        above = np.stack([_sigmoid(scores - scores[:, [index]]).sum(axis=1) for index in range(size)], axis=1)
        # An item stands above itself with probability 1/2 in this sum, and ranks count from 1.
        return np.asarray(above + 0.5)


def check_of(of: str) -> None:
    """Refuse a quantity that cannot be explained."""
    if not isinstance(of, str) or of not in ("score", "expected_rank"):
        raise RankPolicyError(f"of must be 'score' or 'expected_rank'; got {of!r}.")


def _one_query(like: RankingDataset, features: Rows) -> RankingDataset:
    return _dataset(like, features, np.array([0, len(features)]), groups=None)


def _dataset(
    like: RankingDataset, features: Rows, offsets: NDArray[np.int64], *, groups: NDArray[Any] | None
) -> RankingDataset:
    return RankingDataset(
        features_by_query=np.ascontiguousarray(features, np.float32),
        labels_by_query=np.zeros(len(features), np.float32),
        query_offsets=offsets,
        query_ids=np.arange(len(offsets) - 1).astype(str),
        source_rows_by_query=np.arange(len(features)),
        groups_by_query=groups,
        feature_names=like.feature_names,
        categories=like.categories,
        label_kind="none",
    )


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp(-np.logaddexp(0, -values)))
