"""What bandits that compare pairs of items share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.base import Bandit
from rankpolicy.settings import setting


@dataclass(kw_only=True, eq=False)
class PairBandit(Bandit):
    """A bandit that compares pairs of items whose order was random.

    Which pairs these were is known for the last ranked list only, so feedback must come before the next list is ranked. Lists that it
    did not rank itself teach it nothing useful, and a list cannot be taken back.
    """

    is_additive: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = True
    num_columns: ClassVar[int | None] = None

    failure_probability: float = setting(
        1e-4,
        "Probability of a wrong conclusion about a pair; best about 1 / number of lists to come.",
        above=0,
        below=1,
    )

    def _numbers(self) -> tuple[float, ...]:
        return (self.failure_probability,)

    def _check_statistics(self, statistics: NDArray[np.float64]) -> None:
        """Differences of clicks and flags: every finite number is possible."""
