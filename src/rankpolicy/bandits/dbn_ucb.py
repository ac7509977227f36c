"""DBN-UCB: confidence bounds for users of the dynamic Bayesian network model (Chapelle & Zhang 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.chain import ChainUCB
from rankpolicy.bandits.dbn import DbnBandit
from rankpolicy.settings import documented


@documented
@dataclass(kw_only=True, eq=False)
class DbnUCB(ChainUCB, DbnBandit):
    """DbnTS with the KL-UCB bounds of attraction and satisfaction in place of draws; no guarantee is known.

    The items of the largest product of the two bounds are shown. A bound is max {q >= mean : T kl(mean, q) <= log t + log_log_weight
    log log t}, mean = successes / T, and 1 without trials; attracted of examined, satisfied of clicked are expected counts, so the order of
    feedback matters slightly. Items that are shown to learn about their satisfaction go first, because the last position says nothing
    about it.

    >>> bandit = DbnUCB(num_items=3, cutoff=2, continuation=1.0)
    >>> bandit.learn([0, 1], [1, 0])
    >>> bandit.memory.statistics.round(3).tolist()  # as DbnTS
    [[[1.0, 1.0], [0.0, 0.333], [0.0, 0.0]], [[0.222, 0.333], [0.0, 0.0], [0.0, 0.0]]]
    """

    name: ClassVar[str] = "dbn-ucb"
