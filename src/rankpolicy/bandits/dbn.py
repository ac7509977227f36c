"""What bandits for users of the dynamic Bayesian network model share (Chapelle & Zhang 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.chain import ChainBandit
from rankpolicy.settings import setting


@dataclass(kw_only=True, eq=False)
class DbnBandit(ChainBandit):
    """A bandit for users of the dynamic Bayesian network model, whose probability to continue is known."""

    made_for: ClassVar[str] = "dbn"
    num_tables: ClassVar[int | None] = 2

    continuation: float = setting(
        0.9,
        "Probability that a user who is not satisfied continues; 1 is the simplified model (SDBN). It is not learned; fit the click model "
        "dbn to a log to know it.",
        at_least=0,
        at_most=1,
    )

    def _continuations(self) -> tuple[float, float, float]:
        return self.continuation, self.continuation, 0.0
