"""Click logs: what was shown to whom in which order, and what was clicked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.distinct import distinct_rows
from rankpolicy.types import RankPolicyError

NOT_SHOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickLog:
    """Sessions: a query, the list of items it was answered with, and the clicks on it; lists may differ in length.

    Sessions stand in the order of the log until ``collapsed`` turns identical ones into counts. A log known only as counts by
    (query, item, position) has ``has_sessions=False``: each row is one shown item, and what stood around it is not known.
    """

    query_names: tuple[str, ...]
    item_names: tuple[str, ...]
    queries: NDArray[np.int32]  # (session,) code of the query
    items: NDArray[np.int32]  # (session, position) code of the item shown there, NOT_SHOWN where none was
    clicks: NDArray[np.int8]  # (session, position) 1 where clicked
    counts: NDArray[np.int64]  # (session,) how often this session occurred
    has_sessions: bool = True
    num_dropped_clicks: int = 0  # clicks on items that were not shown
    num_repeated_clicks: int = 0  # further clicks on the same place of a list, which has one mark
    num_skipped_rows: int = 0  # malformed rows, where these are tolerated

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def num_sessions(self) -> int:
        return int(self.counts.sum())

    @property
    def num_positions(self) -> int:
        return self.items.shape[1]

    @property
    def num_clicks(self) -> int:
        return int((self.clicks.sum(1) * self.counts).sum())

    def collapsed(self) -> ClickLog:
        """The same log with identical (query, list, clicks) counted once, in the order of their first occurrence.

        >>> log = log_from_lists(["a", "b", "a"], [["x", "y"], ["x"], ["x", "y"]], [[0, 1], [0], [0, 1]])
        >>> log.collapsed().counts.tolist()
        [2, 1]
        """
        first, inverse = distinct_rows(np.column_stack([self.queries, self.items, self.clicks]))
        totals = np.bincount(inverse, self.counts, len(first)).astype(np.int64)
        order = np.argsort(first)
        return replace(self._rows(first[order]), counts=totals[order])

    def split(self, test_fraction: float) -> tuple[ClickLog, ClickLog]:
        """The first sessions of each query to learn from, its last ``test_fraction`` to be measured on, in the order of the log.

        Within each query, since logs are often sorted by it. A query with one session is learned from.

        >>> log = log_from_lists(["a", "a", "b"], [["x"], ["y"], ["x"]], [[0], [1], [0]])
        >>> [part.queries.tolist() for part in log.split(0.5)]
        [[0, 1], [0]]
        """
        if not 0 < test_fraction < 1:
            raise RankPolicyError(f"test_fraction must lie between 0 and 1; got {test_fraction}.")
        if not self.has_sessions:
            raise RankPolicyError("counts by (query, item, position) have no order to split by; give a log to test on.")
        sizes = np.bincount(self.queries, minlength=len(self.query_names))
        order = np.argsort(self.queries, kind="stable")
        place = np.empty(len(self), np.int64)
        place[order] = np.arange(len(self)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        is_test = place >= (sizes - np.floor(sizes * test_fraction))[self.queries]
        if not is_test.any():
            raise RankPolicyError(
                f"test_fraction {test_fraction} leaves nothing to test on: no query has {1 / test_fraction:.0f} sessions."
            )
        return self._rows(np.flatnonzero(~is_test)), self._rows(np.flatnonzero(is_test))

    def with_clicks(self, clicks: NDArray[np.int8]) -> ClickLog:
        """The same lists with other clicks (session, position)."""
        return replace(self, clicks=clicks)

    def of_query(self, name: str) -> ClickLog:
        """The sessions of one query; names and codes stay."""
        if name not in self.query_names:
            raise RankPolicyError(
                f"the log has no query {name!r}; its {len(self.query_names)} queries are query_names."
            )
        return self._rows(np.flatnonzero(self.queries == self.query_names.index(name)))

    def _rows(self, rows: NDArray[np.intp]) -> ClickLog:
        # What was dropped or skipped belongs to the reading of the whole file and stays with every part.
        return replace(
            self,
            queries=self.queries[rows],
            items=self.items[rows],
            clicks=self.clicks[rows],
            counts=self.counts[rows],
        )


def log_from_lists(
    queries: Sequence[object],
    items: Sequence[Sequence[object]],
    clicks: Sequence[Sequence[int]],
    *,
    counts: Sequence[int] | None = None,
) -> ClickLog:
    """A log from plain lists: a query, the items shown from the top and 0 or 1 for each, a session.

    >>> log_from_lists(["a"], [["x", "y"]], [[0, 1]]).items.tolist()
    [[0, 1]]
    """
    if not len(queries) == len(items) == len(clicks):
        raise RankPolicyError(
            f"queries, items and clicks must have a row a session; got {len(queries)}, {len(items)} and {len(clicks)}."
        )
    wrong = [row for row, (shown, marks) in enumerate(zip(items, clicks, strict=True)) if len(shown) != len(marks)]
    if wrong:
        raise RankPolicyError(
            f"clicks must have a mark for every item shown; row {wrong[0]} has {len(items[wrong[0]])} items and "
            f"{len(clicks[wrong[0]])} marks."
        )
    query_names, query_codes = coded(queries)
    item_names, flat_codes = coded(item for shown in items for item in shown)
    lengths = np.array([len(shown) for shown in items], np.int64)
    marks = np.fromiter((mark for row in clicks for mark in row), np.int64, int(lengths.sum()))
    return padded_log(query_names, item_names, query_codes, lengths, flat_codes, marks, counts=counts)


def padded_log(
    query_names: tuple[str, ...],
    item_names: tuple[str, ...],
    queries: NDArray[Any],
    lengths: NDArray[np.int64],
    flat_items: NDArray[Any],
    flat_clicks: NDArray[Any],
    *,
    counts: Sequence[int] | None = None,
    num_dropped_clicks: int = 0,
    num_repeated_clicks: int = 0,
    num_skipped_rows: int = 0,
) -> ClickLog:
    """A log from lists that lie one behind the other, ``lengths`` (session,) long; clicks are 0 or 1."""
    if len(lengths) == 0 or lengths.min() < 1:
        raise RankPolicyError("a click log must hold at least one session, and every session at least one item.")
    wrong = np.flatnonzero((flat_clicks != 0) & (flat_clicks != 1))
    if len(wrong):
        raise RankPolicyError(f"clicks must be 0 or 1; got {flat_clicks[wrong[0]]}.")
    width = int(lengths.max())
    is_shown = np.arange(width) < lengths[:, None]
    items = np.full(is_shown.shape, NOT_SHOWN, np.int32)
    clicks = np.zeros(is_shown.shape, np.int8)
    items[is_shown] = flat_items
    clicks[is_shown] = flat_clicks
    repeats = np.ones(len(lengths), np.int64) if counts is None else np.asarray(counts, np.int64)
    if repeats.shape != lengths.shape or repeats.min() < 1:
        raise RankPolicyError("counts must be whole numbers, 1 or more, one for each session.")
    return ClickLog(
        query_names=query_names,
        item_names=item_names,
        queries=np.asarray(queries, np.int32),
        items=items,
        clicks=clicks,
        counts=repeats,
        num_dropped_clicks=num_dropped_clicks,
        num_repeated_clicks=num_repeated_clicks,
        num_skipped_rows=num_skipped_rows,
    )


def coded(names: Iterable[object]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Distinct names in the order of their first occurrence, and the code of each name.

    >>> coded(["b", "a", "b"])
    (('b', 'a'), array([0, 1, 0], dtype=int32))
    """
    codes: dict[str, int] = {}
    result = np.array([codes.setdefault(str(name), len(codes)) for name in names], np.int32)
    return tuple(codes), result
