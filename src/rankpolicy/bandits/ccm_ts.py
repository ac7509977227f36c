"""CCM-TS: Thompson sampling for users of the click chain model (Guo et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.ccm import CcmBandit
from rankpolicy.bandits.chain import ChainTS
from rankpolicy.settings import documented


@documented
@dataclass(kw_only=True, eq=False)
class CcmTS(ChainTS, CcmBandit):
    """Thompson sampling for users of the click chain model (Guo et al. 2009).

    Users continue with probability tau_1 after no click and tau_2 (1 - a) + tau_3 a after a click on an item of attraction a. Whether
    they continued after a click is informative about a: with tau_3 < tau_2 those who leave found the item relevant. The items that
    attract most in the draw are shown in their best order, by a / (1 - passed). Counts are expectations, so the order of feedback
    matters slightly.

    >>> bandit = CcmTS(num_items=2, cutoff=2, continuation=(1.0, 0.5, 0.0))
    >>> bandit.learn([0, 1], [1, 1])  # only users who found item 0 not relevant continue; nothing is known about item 1
    >>> bandit.memory.statistics[0].round(3).tolist()  # P(no click below) = 7/8 explains 1/4 * (1 - 3/4)^2 / (7/8 * 1/8) = 1/7
    [[1.0, 1.143], [1.0, 1.0]]
    """

    name: ClassVar[str] = "ccm-ts"
