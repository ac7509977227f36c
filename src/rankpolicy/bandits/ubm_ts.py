"""UBM-TS: Thompson sampling for users of the user browsing model (Dupret & Piwowarski 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.examined import ExaminedBandit
from rankpolicy.bandits.indices import BetaPrior
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.settings import documented, setting
from rankpolicy.types import RankPolicyError


@documented
@dataclass(kw_only=True, eq=False)
class UbmTS(BetaPrior, ExaminedBandit):
    """Thompson sampling as in PbmTS, for users whose examination depends on the position and on the last click above it.

    The user browsing model of Dupret & Piwowarski (2008). The best item comes first.

    >>> bandit = UbmTS(num_items=3, cutoff=3)
    >>> bandit.learn([2, 0, 1], [1, 0, 0])
    >>> np.argwhere(bandit.memory.statistics[..., 1]).tolist()  # (cell, item); cells of positions: 0; 1, 2; 3, 4, 5
    [[0, 2], [2, 0], [4, 1]]
    """

    name: ClassVar[str] = "ubm-ts"
    made_for: ClassVar[str] = "ubm"
    num_tables: ClassVar[int | None] = None

    examination: tuple[tuple[float, ...], ...] | None = setting(
        None,
        "Examination probabilities, one row per position: column r for the last click at 1-based position r, 0 for none. Columns right of "
        "the position are not read. None estimates them from the bandit's own lists.",
    )

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.examination import learn_by_last_click_above, rank_examined_by_thompson_sampling

        return Program(rank_examined_by_thompson_sampling, learn_by_last_click_above)

    def _cells(self) -> tuple[float, ...]:
        return tuple(value for k, row in enumerate(self.examination or ()) for value in row[: k + 1])

    def _numbers(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips, 0.0, *self._cells()

    def _check(self) -> None:
        if self.examination is None:
            return
        if any(len(row) <= k for k, row in enumerate(self.examination)):
            raise RankPolicyError("examination must have at least as many numbers in each row as its 1-based position.")
        self._check_number(self._cells(), self._num_cells())
        if not all(0 < value <= 1 for value in self._cells()):
            raise RankPolicyError(f"examination must be above 0 and at most 1; got {min(self._cells())}.")

    def _num_cells(self) -> int:
        return self.cutoff * (self.cutoff + 1) // 2

    def _empty_statistics(self) -> NDArray[np.float64]:
        return np.zeros((self._num_cells(), self.num_items, 2))
