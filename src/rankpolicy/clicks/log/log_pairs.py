"""The (query, item) pairs of a log, the log in numbers of these pairs, and how often each was shown and clicked at each position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN, ClickLog
from rankpolicy.clicks.log.row_counts import weighted_counts
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.display import short_repr
from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.types import RankPolicyError

_BLOCK_SESSIONS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """Pairs sorted by query, then by item; there may be names that no pair uses."""

    query_names: tuple[str, ...]
    item_names: tuple[str, ...]
    queries: NDArray[np.int32]  # (pair,)
    items: NDArray[np.int32]  # (pair,)

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.queries)

    def view(self, log: ClickLog) -> LogView:
        """The log in numbers of these pairs; an unknown pair has the number ``len(self)``."""
        queries = _recoded(log.queries, log.query_names, self.query_names)
        items = _recoded(log.items, log.item_names, self.item_names)
        return LogView(
            queries=queries.astype(np.int64),
            pairs=self._codes(queries[:, None], items),
            is_shown=log.items != NOT_SHOWN,
            clicks=log.clicks.astype(bool),
            counts=log.counts.astype(np.float64),
            num_pairs=len(self),
        )

    def codes(self, query: str, items: list[str]) -> NDArray[np.int64]:
        """The numbers of the pairs of one query with these items, ``len(self)`` where a pair is not known."""
        query_code = self.query_names.index(query) if query in self.query_names else NOT_SHOWN
        pair_of_item = {self.item_names[item]: pair for pair, item in self._of_query(query_code)}
        return np.array([pair_of_item.get(item, len(self)) for item in items], np.int64)

    def _of_query(self, query_code: int) -> list[tuple[int, int]]:
        first, end = np.searchsorted(self.queries, [query_code, query_code + 1])
        return list(zip(range(first, end), self.items[first:end].tolist(), strict=True))

    def _codes(self, queries: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.int64]:
        num_items, num_pairs = len(self.item_names), len(self)
        keys = queries.astype(np.int64) * num_items + items
        keys[(queries < 0) | (items < 0)] = -1
        known_keys = self.queries.astype(np.int64) * num_items + self.items
        bound = len(self.query_names) * num_items
        if bound <= 4 * keys.size + 1024:
            table = np.full(bound + 1, num_pairs)
            table[known_keys] = np.arange(num_pairs)
            numbers: NDArray[np.int64] = table[keys]  # -1 reads the last entry
            return numbers
        indices = np.minimum(np.searchsorted(known_keys, keys), num_pairs - 1)
        return np.where(known_keys[indices] == keys, indices, num_pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """A log in numbers of pairs, which is what all computation works on."""

    queries: NDArray[np.int64]  # (session,)
    pairs: NDArray[np.int64]  # (session, position); num_pairs where the pair is unknown or nothing was shown
    is_shown: NDArray[np.bool_]  # (session, position)
    clicks: NDArray[np.bool_]  # (session, position)
    counts: NDArray[np.float64]  # (session,)
    num_pairs: int

    __repr__ = short_repr

    @property
    def num_positions(self) -> int:
        """Length of the longest list."""
        return int(self.pairs.shape[1])

    def of_sessions(self, rows: Any) -> LogView:
        """Some of the sessions."""
        return replace(
            self,
            queries=self.queries[rows],
            pairs=self.pairs[rows],
            is_shown=self.is_shown[rows],
            clicks=self.clicks[rows],
            counts=self.counts[rows],
        )

    def blocks(self) -> Iterator[LogView]:
        """The sessions in order, some at a time, for what takes many times the memory of a view."""
        for start in range(0, max(1, len(self.queries)), _BLOCK_SESSIONS):
            yield self.of_sessions(slice(start, start + _BLOCK_SESSIONS))

    @property
    def weights(self) -> NDArray[np.float64]:
        """How often each item was shown (session, position); 0 below the end of a list."""
        return np.where(self.is_shown, self.counts[:, None], 0.0)

    @property
    def has_next(self) -> NDArray[np.bool_]:
        """Whether another item follows below (session, position)."""
        return np.pad(self.is_shown, ((0, 0), (0, 1)))[:, 1:]

    @property
    def has_later_click(self) -> NDArray[np.bool_]:
        """Whether an item further down was clicked (session, position)."""
        from_here_on = np.logical_or.accumulate(self.clicks[:, ::-1], 1)[:, ::-1]
        return np.pad(from_here_on, ((0, 0), (0, 1)))[:, 1:]

    def sum_by_pair(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums by pair (pair + 1,) of values (session, position) that are 0 where nothing was shown."""
        return weighted_counts(self.pairs, values, self.num_pairs + 1)


def pairs_of(log: ClickLog) -> PairTable:
    """Every (query, item) pair that was shown.

    >>> from rankpolicy.clicks.log.click_log import log_from_lists
    >>> table = pairs_of(log_from_lists(["a", "b"], [["x", "y"], ["y"]], [[0, 1], [0]]))
    >>> table.queries.tolist(), table.items.tolist()
    ([0, 0, 1], [0, 1, 1])
    """
    num_items = len(log.item_names)
    keys = (log.queries[:, None].astype(np.int64) * num_items + log.items)[log.items != NOT_SHOWN]
    if len(keys) == 0:
        raise RankPolicyError("a click log must show at least one item; this one shows none.")
    bound = len(log.query_names) * num_items
    distinct_keys = np.flatnonzero(np.bincount(keys)) if bound <= 4 * len(keys) + 1024 else np.unique(keys)
    return PairTable(
        query_names=log.query_names,
        item_names=log.item_names,
        queries=(distinct_keys // num_items).astype(np.int32),
        items=(distinct_keys % num_items).astype(np.int32),
    )


def _recoded(codes: NDArray[np.int32], names: tuple[str, ...], new_names: tuple[str, ...]) -> NDArray[np.int32]:
    if names is new_names:
        return codes
    code_of = {name: code for code, name in enumerate(new_names)}
    # NOT_SHOWN, which is -1, reads the last entry.
    table = np.array([*(code_of.get(name, NOT_SHOWN) for name in names), NOT_SHOWN], np.int32)
    return table[codes]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCounts:
    """Impressions and clicks by pair and position.

    Parameters
    ----------
    shown
        How often each pair was shown at each position (..., pair, position); with several weightings of the sessions, one table each.
    clicks
        How often it was clicked there (..., pair, position).
    """

    shown: NDArray[np.float64]
    clicks: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The shown items of a log, numbered by owner and position; an owner is a pair, or a whole list."""

    codes: NDArray[np.int32]  # (shown,)
    rows: NDArray[np.int32]  # (shown,) the session
    is_clicked: NDArray[np.bool_]  # (shown,)
    num_owners: int
    num_positions: int

    def counts(self, weights: NDArray[np.float64]) -> PairCounts:
        """Counts by weights (resample, session)."""
        clicked = self.is_clicked
        return PairCounts(
            shown=self._sums(self.codes, self.rows, weights),
            clicks=self._sums(self.codes[clicked], self.rows[clicked], weights),
        )

    def _sums(
        self, codes: NDArray[np.int32], rows: NDArray[np.int32], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        size = self.num_owners * self.num_positions
        totals = _weighted_counts(codes, rows, weights, size)
        return totals.reshape(len(weights), self.num_owners, self.num_positions)


def cells_by_owner(view: LogView, owners: NDArray[Any], num_owners: int) -> Cells:
    """The shown items of a log by owner (session, position), which broadcasts, and position."""
    rows, positions = np.nonzero(view.is_shown)
    codes = np.broadcast_to(owners, view.pairs.shape)[rows, positions] * view.num_positions + positions
    return Cells(
        codes=codes.astype(np.int32),
        rows=rows.astype(np.int32),
        is_clicked=view.clicks[rows, positions],
        num_owners=num_owners,
        num_positions=view.num_positions,
    )


@checked_kinds
def pair_counts(log: ClickLog) -> tuple[PairTable, PairCounts]:
    """The pairs of a log and their counts (pair, position).

    Parameters
    ----------
    log
        What was shown and clicked.

    >>> from rankpolicy.clicks.log.click_log import log_from_lists
    >>> table, counts = pair_counts(log_from_lists(["a", "a"], [["x", "y"], ["y", "x"]], [[1, 0], [1, 0]]))
    >>> counts.shown.tolist(), counts.clicks.tolist()
    ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]])
    """
    table = pairs_of(log)
    view = table.view(log)
    counts = cells_by_owner(view, view.pairs, len(table)).counts(view.counts[None])
    return table, PairCounts(shown=counts.shown[0], clicks=counts.clicks[0])


def _weighted_counts(
    codes: NDArray[np.int32], rows: NDArray[np.int32], weights: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    if HAS_NUMBA:
        from rankpolicy.kernels.clicks.expectation import weighted_counts_of_rows

        totals: NDArray[np.float64] = weighted_counts_of_rows(codes, rows, weights, size)
        return totals
    return np.stack([np.bincount(codes, of_rows[rows], size) for of_rows in weights])
