"""CCM-UCB: confidence bounds for users of the click chain model (Guo et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.ccm import CcmBandit
from rankpolicy.bandits.chain import ChainUCB
from rankpolicy.settings import documented


@documented
@dataclass(kw_only=True, eq=False)
class CcmUCB(ChainUCB, CcmBandit):
    """CcmTS with the KL-UCB bound u of each attraction in place of a draw; no guarantee is known.

    The items of the largest u are shown in their best order, by u / (1 - passed), as if u were their attraction. The bound is
    max {q >= mean : T kl(mean, q) <= log t + log_log_weight log log t}, mean = successes / T; successes and trials T are expected counts,
    of attraction and of relevance after clicks, so the order of feedback matters slightly.

    >>> bandit = CcmUCB(num_items=3, cutoff=2, continuation=(1.0, 0.5, 0.0))
    >>> bandit.learn([0, 1], [1, 1])
    >>> bandit.memory.statistics[0].round(3).tolist()  # as CcmTS
    [[1.0, 1.143], [1.0, 1.0], [0.0, 0.0]]
    >>> 2 in bandit.rank()  # nothing is known about item 2: its bound is 1
    True
    """

    name: ClassVar[str] = "ccm-ucb"
