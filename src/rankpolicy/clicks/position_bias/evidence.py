"""What estimators of position bias read, a log and what else is known about its sessions and pairs, and what each method declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.log_pairs import Cells, LogView, PairCounts, PairTable, cells_by_owner, pairs_of
from rankpolicy.clicks.log.row_counts import distinct_rows
from rankpolicy.clicks.models.click_model import ClickModel


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A log with its counts prepared; weights (resample, session) say how often each session counts."""

    log: ClickLog
    segments: NDArray[np.str_] | None = None  # (session,)
    query_features: NDArray[np.float64] | None = None  # (session, feature)
    swaps: NDArray[np.int64] | None = None  # (session, 2) the two positions, counted from 0; -1 without a swap
    pair_features: NDArray[np.float64] | None = None  # (pair, feature)
    click_model: str | ClickModel = "pbm"

    @cached_property
    def table(self) -> PairTable:
        return pairs_of(self.log)

    @cached_property
    def view(self) -> LogView:
        return self.table.view(self.log)

    @property
    def num_positions(self) -> int:
        return self.log.num_positions

    def pair_counts(self, weights: NDArray[np.float64]) -> PairCounts:
        """Impressions and clicks by pair (resample, pair, position)."""
        return self._cells_by_pair.counts(weights)

    def position_counts(self, weights: NDArray[np.float64]) -> PairCounts:
        """Impressions and clicks by rank, all pairs together (resample, position)."""
        counts = self._cells.counts(weights)
        return PairCounts(shown=counts.shown[:, 0], clicks=counts.clicks[:, 0])

    @cached_property
    def feature_groups(self) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """The distinct rows of a column of ones and the query features (group, 1 + feature), and the group of each session."""
        assert self.query_features is not None
        groups, codes = np.unique(self.query_features, axis=0, return_inverse=True)
        return np.column_stack([np.ones(len(groups)), groups]), codes

    def group_counts(self, weights: NDArray[np.float64]) -> PairCounts:
        """Impressions and clicks by group of sessions with the same query features (resample, group, position)."""
        return self._cells_by_group.counts(weights)

    @cached_property
    def lists(self) -> NDArray[np.int64]:
        """The distinct lists in pair codes (list, position); ``len(table)`` where nothing was shown."""
        return self.view.pairs[self._first_and_inverse[0]]

    def list_clicks(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Clicks on each distinct list (resample, list, position)."""
        return self._cells_by_list.counts(weights).clicks

    @cached_property
    def _first_and_inverse(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return distinct_rows(self.view.pairs)

    @cached_property
    def _cells(self) -> Cells:
        return cells_by_owner(self.view, np.zeros((1, 1), np.int64), 1)

    @cached_property
    def _cells_by_group(self) -> Cells:
        design, codes = self.feature_groups
        return cells_by_owner(self.view, codes[:, None], len(design))

    @cached_property
    def _cells_by_pair(self) -> Cells:
        return cells_by_owner(self.view, self.view.pairs, len(self.table))

    @cached_property
    def _cells_by_list(self) -> Cells:
        first, inverse = self._first_and_inverse
        return cells_by_owner(self.view, inverse[:, None], len(first))


# From weights (resample, session) to propensities relative to the first rank (resample, position).
Estimate = Callable[[Evidence, NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionBiasMethod:
    """An estimator, and the arguments of ``estimate_position_bias`` that it reads."""

    title: str
    estimate: Estimate
    needs: str | None = None  # an argument that must be given
    takes: str | None = None  # an argument that may be given
    needs_sessions: bool = False  # cannot work from counts by (query, item, position)
