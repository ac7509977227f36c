"""DBN-TS: Thompson sampling for users of the dynamic Bayesian network model (Chapelle & Zhang 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.chain import ChainTS
from rankpolicy.settings import documented, setting


@documented
@dataclass(kw_only=True, eq=False)
class DbnTS(ChainTS):
    """Thompson sampling for users of the dynamic Bayesian network model (Chapelle & Zhang 2009).

    A clicked item satisfies the user with an item-specific probability s, and the user stops; otherwise the user continues with probability
    ``continuation``. Attraction a and satisfaction s are drawn, and the items of the largest a s are shown. A click before the last did not
    satisfy; the last one did with probability s / (s + (1 - s) P(no click below | not satisfied)). Counts are expectations, so the order of
    feedback matters slightly.

    >>> bandit = DbnTS(num_items=2, cutoff=2, continuation=1.0)
    >>> bandit.learn([0, 1], [1, 0])  # P(satisfied) = 1/2 / (1/2 + 1/2 * 1/2) = 2/3; a user who was not satisfied examined item 1
    >>> bandit.memory.statistics.round(3).tolist()  # attracted of examined, then satisfied of clicked
    [[[1.0, 1.0], [0.0, 0.333]], [[0.667, 1.0], [0.0, 0.0]]]
    """

    name: ClassVar[str] = "dbn-ts"
    made_for: ClassVar[str] = "dbn"
    num_tables: ClassVar[int | None] = 2

    continuation: float = setting(
        0.9,
        "Probability that a user who is not satisfied continues; 1 is the simplified model (SDBN). It is not learned; fit the click model "
        "dbn to a log to know it.",
        at_least=0,
        at_most=1,
    )

    def _numbers(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips, self.continuation, self.continuation, 0.0
