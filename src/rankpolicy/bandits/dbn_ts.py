"""DBN-TS: Thompson sampling for users of the dynamic Bayesian network model (Chapelle & Zhang 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.chain import ChainTS
from rankpolicy.bandits.dbn import DbnBandit
from rankpolicy.settings import documented


@documented
@dataclass(kw_only=True, eq=False)
class DbnTS(ChainTS, DbnBandit):
    """Thompson sampling for users of the dynamic Bayesian network model (Chapelle & Zhang 2009).

    A clicked item satisfies the user with an item-specific probability s, and the user stops; otherwise the user continues with probability
    ``continuation``. Attraction a and satisfaction s are drawn, and the items of the largest a s are shown. A click before the last did not
    satisfy; the last one did with probability s / (s + (1 - s) P(no click below | not satisfied)). Counts are expectations, so the order of
    feedback matters slightly. Items that are shown to learn about their satisfaction go first, because the last position says nothing
    about it.

    >>> bandit = DbnTS(num_items=2, cutoff=2, continuation=1.0)
    >>> bandit.learn([0, 1], [1, 0])  # P(satisfied) = 1/2 / (1/2 + 1/2 * 1/2) = 2/3; a user who was not satisfied examined item 1
    >>> # P(no click below) = 3/4 explains 1/4 * (1 - 1/2)^2 / (3/4 * 1/4) = 1/3 of the variance of satisfaction: a third of a trial
    >>> bandit.memory.statistics.round(3).tolist()  # attracted of examined, then satisfied of clicked
    [[[1.0, 1.0], [0.0, 0.333]], [[0.222, 0.333], [0.0, 0.0]]]
    """

    name: ClassVar[str] = "dbn-ts"
