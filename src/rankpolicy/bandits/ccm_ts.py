"""CCM-TS: Thompson sampling for users of the click chain model (Guo et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.chain import ChainTS
from rankpolicy.settings import documented, setting
from rankpolicy.types import RankPolicyError


@documented
@dataclass(kw_only=True, eq=False)
class CcmTS(ChainTS):
    """Thompson sampling for users of the click chain model (Guo et al. 2009).

    Users continue with probability tau_1 after no click and tau_2 (1 - a) + tau_3 a after a click on an item of attraction a. Whether
    they continued after a click is informative about a: with tau_3 < tau_2 those who leave found the item relevant. The items that
    attract most in the draw are shown in their best order, by a / (1 - passed). Counts are expectations, so the order of feedback
    matters slightly.

    >>> bandit = CcmTS(num_items=2, cutoff=2, continuation=(1.0, 0.5, 0.0))
    >>> bandit.learn([0, 1], [1, 1])  # only users who found item 0 not relevant continue; then P(relevant) = 1/2 / (1/2 + 1/2)
    >>> bandit.memory.statistics[0].tolist()
    [[1.0, 2.0], [1.5, 2.0]]
    """

    name: ClassVar[str] = "ccm-ts"
    made_for: ClassVar[str] = "ccm"

    continuation: tuple[float, ...] = setting(
        (0.9, 0.7, 0.3),
        "tau_1, tau_2, tau_3: probabilities to continue after no click, a click on an item that is not relevant, and on a relevant one. "
        "They are not learned; fit the click model ccm to a log to know them.",
        at_least=0,
        at_most=1,
    )

    def _numbers(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips, *self.continuation

    def _check(self) -> None:
        if len(self.continuation) != 3:
            raise RankPolicyError(f"continuation must be tau_1, tau_2, tau_3; got {len(self.continuation)} numbers.")
