"""CCM-TS: Thompson sampling for users of the click chain model (Guo et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.chain import ChainTS, check_continuation
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class CcmTS(ChainTS):
    """Users go on with tau_1 after no click and tau_2 (1 - a) + tau_3 a after one; ``continuation`` holds the three.

    Whether they went on after a click says something of a: with tau_3 < tau_2 those who leave found it relevant. The items that attract
    most in the draw are shown in their best order, by a / (1 - passed). ``continuation`` is not learned: fit a click model to a log.

    >>> bandit = CcmTS(num_items=2, cutoff=2, continuation=(1.0, 0.5, 0.0))
    >>> bandit.learn([0, 1], [1, 1])  # went on, which only those do who found item 0 not relevant; then P(relevant) = 1/2 / (1/2 + 1/2)
    >>> bandit.memory.statistics[0].tolist()
    [[1.0, 2.0], [1.5, 2.0]]
    """

    name: ClassVar[str] = "ccm-ts"
    made_for: ClassVar[str] = "ccm"

    continuation: tuple[float, ...] = (0.9, 0.7, 0.3)

    def settings(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips, *self.continuation

    def _check_settings(self) -> None:
        super()._check_settings()
        if len(self.continuation) != 3:
            raise RankPolicyError(f"continuation must be tau_1, tau_2, tau_3; got {len(self.continuation)} numbers.")
        check_continuation(self.continuation)
