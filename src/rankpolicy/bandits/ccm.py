"""What bandits for users of the click chain model share (Guo et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.chain import ChainBandit
from rankpolicy.settings import setting
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class CcmBandit(ChainBandit):
    """A bandit for users of the click chain model, whose probabilities to continue are known."""

    made_for: ClassVar[str] = "ccm"

    continuation: tuple[float, ...] = setting(
        (0.9, 0.7, 0.3),
        "tau_1, tau_2, tau_3: probabilities to continue after no click, a click on an item that is not relevant, and on a relevant one. "
        "They are not learned; fit the click model ccm to a log to know them.",
        at_least=0,
        at_most=1,
    )

    def _continuations(self) -> tuple[float, float, float]:
        after_none, after_irrelevant, after_relevant = self.continuation
        return after_none, after_irrelevant, after_relevant

    def _check(self) -> None:
        if len(self.continuation) != 3:
            raise RankPolicyError(f"continuation must be tau_1, tau_2, tau_3; got {len(self.continuation)} numbers.")
