"""Click logs: which lists were shown, and what was clicked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.row_counts import distinct_rows
from rankpolicy.declarations.arguments import as_whole_numbers, checked_kinds
from rankpolicy.display import html_block, html_table
from rankpolicy.types import RankPolicyError

NOT_SHOWN = -1
_RANKS_SHOWN = 10  # in notebooks


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickLog:
    """Sessions: a query, the list of items that was shown for it, and the clicks on that list.

    Sessions are in the order of the log until ``collapsed`` turns identical ones into counts. ``read_click_log`` and
    ``log_from_lists`` make logs.

    Parameters
    ----------
    query_names, item_names
        Names of queries and items; the arrays below hold their numbers.
    queries
        Number of the query of each session (session,).
    items
        Number of the item shown at each position (session, position); -1 below the end of a list.
    clicks
        1 where the item was clicked, else 0 (session, position).
    counts
        How often each session occurred (session,).
    has_sessions
        False for counts by (query, item, position): then each row is one shown item, and the rest of its list is not known.
    num_dropped_clicks
        Clicks on items that were not shown, which are left out.
    num_repeated_clicks
        Further clicks on the same place of a list, which count once.
    num_skipped_rows
        Malformed rows that were skipped.
    """

    query_names: tuple[str, ...]
    item_names: tuple[str, ...]
    queries: NDArray[np.int32]
    items: NDArray[np.int32]
    clicks: NDArray[np.int8]
    counts: NDArray[np.int64]
    has_sessions: bool = True
    num_dropped_clicks: int = 0
    num_repeated_clicks: int = 0
    num_skipped_rows: int = 0

    def __len__(self) -> int:
        return len(self.queries)

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={number}" for name, number in self._facts().items())
        return f"ClickLog({facts}{'' if self.has_sessions else ', counts by query, item and position'})"

    def _repr_html_(self) -> str:
        shown = self.items != NOT_SHOWN
        impressions, clicks = (self.counts @ shown).tolist(), (self.counts @ (self.clicks * shown)).tolist()
        rows = [
            (rank, num_shown, num_clicks, f"{num_clicks / num_shown:.4f}")
            for rank, (num_shown, num_clicks) in enumerate(zip(impressions, clicks, strict=True), 1)
            if num_shown and rank <= _RANKS_SHOWN
        ]
        by_rank = html_table(rows, header=("rank", "shown", "clicks", "click-through"))
        return html_block("ClickLog", html_table(self._facts().items()), by_rank if self.has_sessions else "")

    def _facts(self) -> dict[str, int]:
        return {
            "sessions": self.num_sessions,
            "queries": len(self.query_names),
            "items": len(self.item_names),
            "positions": self.num_positions,
            "clicks": self.num_clicks,
        }

    @property
    def num_sessions(self) -> int:
        """Number of sessions, with their counts."""
        return int(self.counts.sum())

    @property
    def num_positions(self) -> int:
        """Length of the longest list."""
        return int(self.items.shape[1])

    @property
    def num_clicks(self) -> int:
        """Number of clicks, with the counts of their sessions."""
        return int((self.clicks.sum(1) * self.counts).sum())

    def collapsed(self) -> ClickLog:
        """The same log with identical sessions merged into one with a count, in the order of their first occurrence.

        >>> log = log_from_lists(["a", "b", "a"], [["x", "y"], ["x"], ["x", "y"]], [[0, 1], [0], [0, 1]])
        >>> log.collapsed().counts.tolist()
        [2, 1]
        """
        first, inverse = distinct_rows(np.column_stack([self.queries, self.items, self.clicks]))
        totals = np.bincount(inverse, self.counts, len(first)).astype(np.int64)
        order = np.argsort(first)
        return replace(self.of_sessions(first[order]), counts=totals[order])

    @checked_kinds
    def split(self, test_fraction: float) -> tuple[ClickLog, ClickLog]:
        """Split the sessions of each query by their order in the log: the first to fit models to, the last to test them on.

        The split is made within each query because logs are often sorted by query. A query with one session goes to the first part.

        Parameters
        ----------
        test_fraction
            Share of each query's sessions in the second part, between 0 and 1.

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
        rank_in_query = np.empty(len(self), np.int64)
        rank_in_query[order] = np.arange(len(self)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        is_test = rank_in_query >= (sizes - np.floor(sizes * test_fraction))[self.queries]
        if not is_test.any():
            raise RankPolicyError(
                f"test_fraction {test_fraction} leaves nothing to test on: no query has {1 / test_fraction:.0f} sessions."
            )
        return self.of_sessions(np.flatnonzero(~is_test)), self.of_sessions(np.flatnonzero(is_test))

    @checked_kinds
    def with_clicks(self, clicks: NDArray[np.int8]) -> ClickLog:
        """The same lists with other clicks.

        Parameters
        ----------
        clicks
            0 or 1 (session, position).
        """
        if clicks.shape != self.items.shape or not np.isin(clicks, (0, 1)).all():
            raise RankPolicyError(
                f"clicks must be 0 or 1 for each item of each list, shape {self.items.shape}; got shape {clicks.shape}."
            )
        return replace(self, clicks=clicks.astype(np.int8))

    @checked_kinds
    def of_query(self, name: str) -> ClickLog:
        """The sessions of one query; names and numbers stay as they are.

        Parameters
        ----------
        name
            Name of the query.
        """
        if name not in self.query_names:
            raise RankPolicyError(
                f"the log has no query {name!r}; its {len(self.query_names)} queries are query_names."
            )
        return self.of_sessions(np.flatnonzero(self.queries == self.query_names.index(name)))

    def of_sessions(self, rows: NDArray[np.intp]) -> ClickLog:
        """Some of the sessions; names and numbers stay as they are.

        Parameters
        ----------
        rows
            Indices of the sessions, in the order wanted.
        """
        # What was dropped or skipped is counted for the whole file; every part keeps these counts.
        return replace(
            self,
            queries=self.queries[rows],
            items=self.items[rows],
            clicks=self.clicks[rows],
            counts=self.counts[rows],
        )


@checked_kinds
def log_from_lists(
    queries: Sequence[object],
    items: Sequence[Sequence[object]],
    clicks: Sequence[Sequence[int]],
    *,
    counts: Sequence[int] | None = None,
) -> ClickLog:
    """A log from plain lists, with one entry per session.

    Parameters
    ----------
    queries
        Name of the query of each session.
    items
        Names of the items shown in each session, from the top.
    clicks
        0 or 1 for each of these items.
    counts
        How often each session occurred; by default once.

    >>> log_from_lists(["a"], [["x", "y"]], [[0, 1]]).items.tolist()
    [[0, 1]]
    """
    if not len(queries) == len(items) == len(clicks):
        raise RankPolicyError(
            f"queries, items and clicks must have one row per session; got {len(queries)}, {len(items)} and {len(clicks)}."
        )
    wrong = [row for row, (shown, marks) in enumerate(zip(items, clicks, strict=True)) if len(shown) != len(marks)]
    if wrong:
        raise RankPolicyError(
            f"clicks must have one mark for every item shown; row {wrong[0]} has {len(items[wrong[0]])} items and "
            f"{len(clicks[wrong[0]])} marks."
        )
    query_names, query_codes = coded(queries)
    item_names, flat_codes = coded(item for shown in items for item in shown)
    lengths = np.array([len(shown) for shown in items], np.int64)
    sessions = np.repeat(np.arange(len(lengths)), lengths)
    repeated = np.flatnonzero(repeated_items(sessions, flat_codes))
    if len(repeated):
        row, item = int(sessions[repeated[0]]), item_names[flat_codes[repeated[0]]]
        raise RankPolicyError(
            f"every item of a list must be in it once; row {row}, of the query {str(queries[row])!r:.80}, has {item!r:.80} twice."
        )
    flat_marks = [mark for row in clicks for mark in row]
    wrong_marks = [mark for mark in flat_marks if mark not in (0, 1)]
    if wrong_marks:
        raise RankPolicyError(f"clicks must be 0 or 1; got {wrong_marks[0]!r:.60}.")
    marks = np.array(flat_marks, np.int64)
    return padded_log(query_names, item_names, query_codes, lengths, flat_codes, marks, counts=counts)


def repeated_items(sessions: NDArray[Any], items: NDArray[Any]) -> NDArray[np.bool_]:
    """Where an item was in the list of its session before (shown item,).

    >>> repeated_items(np.array([0, 0, 1, 1]), np.array([5, 7, 5, 5])).tolist()
    [False, False, False, True]
    """
    is_repeated = np.ones(len(items), np.bool_)
    keys = sessions.astype(np.int64) * (int(items.max(initial=0)) + 1) + items
    is_repeated[np.unique(keys, return_index=True)[1]] = False
    return is_repeated


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
    """A log from the concatenated lists of all sessions, whose ``lengths`` are (session,); clicks are 0 or 1."""
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
    repeats = np.ones(len(lengths), np.int64) if counts is None else as_whole_numbers("counts", counts)
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
