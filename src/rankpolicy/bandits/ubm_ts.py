"""UBM-TS: Thompson sampling for users of the user browsing model (Dupret & Piwowarski 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.examined import ExaminedBandit
from rankpolicy.bandits.index import check_beta_prior
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class UbmTS(ExaminedBandit):
    """As PBM-TS, where examination depends on the position and on the last click above it; the best item first.

    ``examination`` is as of a simulated user: a row a position, column r for the last click at 1-based position r, 0 for none; what stands
    right of the position is not read.

    >>> bandit = UbmTS(num_items=3, cutoff=3)
    >>> bandit.learn([2, 0, 1], [1, 0, 0])
    >>> np.argwhere(bandit.memory.statistics[..., 1]).tolist()  # (cell, item); cells of positions: 0; 1, 2; 3, 4, 5
    [[0, 2], [2, 0], [4, 1]]
    """

    name: ClassVar[str] = "ubm-ts"
    made_for: ClassVar[str] = "ubm"
    num_tables: ClassVar[int | None] = None

    examination: tuple[tuple[float, ...], ...] | None = None
    prior_clicks: float = 1.0
    prior_skips: float = 1.0

    def settings(self) -> tuple[float, ...]:
        cells = [value for k, row in enumerate(self.examination or ()) for value in row[: k + 1]]
        return self.prior_clicks, self.prior_skips, 0.0, *cells

    def _check_settings(self) -> None:
        if self.examination is not None and any(len(row) <= k for k, row in enumerate(self.examination)):
            raise RankPolicyError("examination must have as many numbers in each row as its position, or more.")
        self._check_examination(self.settings()[3:] if self.examination is not None else None, self._num_cells())
        check_beta_prior(self.prior_clicks, self.prior_skips)

    def _num_cells(self) -> int:
        return self.cutoff * (self.cutoff + 1) // 2

    def _empty_statistics(self) -> NDArray[np.float64]:
        return np.zeros((self._num_cells(), self.num_items, 2))

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.examination import learn_by_last_click_above, rank_examined_by_thompson_sampling

        return Program(rank_examined_by_thompson_sampling, learn_by_last_click_above)
