"""How often each (query, item) pair was shown and clicked at each position, for one or many weightings of the sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.pairs import LogView, PairTable, pairs_of
from rankpolicy.kernels import has_numba


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
    if has_numba():
        from rankpolicy.kernels.clicks.counts import weighted_counts_of_rows

        totals: NDArray[np.float64] = weighted_counts_of_rows(codes, rows, weights, size)
        return totals
    return np.stack([np.bincount(codes, of_rows[rows], size) for of_rows in weights])
