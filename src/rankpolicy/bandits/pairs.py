"""What bandits that compare pairs of items share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Bandit
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class PairBandit(Bandit):
    """Pairs are compared where their order was random, which is known of the last list ranked only: feedback must come before the next one.
    Lists that it did not rank itself teach it nothing of use, and a list cannot be taken back.
    """

    is_additive: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = True
    num_columns: ClassVar[int | None] = None

    failure_probability: float = 1e-4

    def settings(self) -> tuple[float, ...]:
        return (self.failure_probability,)

    def _check_settings(self) -> None:
        if not 0 < self.failure_probability < 1:
            raise RankPolicyError(f"failure_probability must be between 0 and 1; got {self.failure_probability}.")
