"""What bandits for users of the user browsing model share (Dupret & Piwowarski 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.examined import ExaminedBandit
from rankpolicy.settings import setting
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class UbmBandit(ExaminedBandit):
    """A bandit for users whose examination depends on the position and on the last click above it, one cell for each such pair."""

    made_for: ClassVar[str] = "ubm"
    num_tables: ClassVar[int | None] = None

    examination: tuple[tuple[float, ...], ...] | None = setting(
        None,
        "Examination probabilities, one row per position: column r for the last click at 1-based position r, 0 for none. Columns right of "
        "the position are not read. None estimates them from the bandit's own lists.",
    )

    def _cells(self) -> tuple[float, ...]:
        return tuple(value for k, row in enumerate(self.examination or ()) for value in row[: k + 1])

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
