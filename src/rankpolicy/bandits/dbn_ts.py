"""DBN-TS: Thompson sampling for users of the dynamic Bayesian network model (Chapelle & Zhang 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.chain import ChainTS, check_continuation


@dataclass(kw_only=True, eq=False)
class DbnTS(ChainTS):
    """Users are satisfied by a clicked item with a probability s of its own and stop; else they go on with ``continuation``, 1 for SDBN.

    Attraction a and satisfaction s are drawn, and the items of the largest a s are shown. A click before the last did not satisfy; the last
    one did with probability s / (s + (1 - s) P(no click below | not satisfied)). ``continuation`` is not learned: fit a click model to
    a log.

    >>> bandit = DbnTS(num_items=2, cutoff=2, continuation=1.0)
    >>> bandit.learn([0, 1], [1, 0])  # P(satisfied) = 1/2 / (1/2 + 1/2 * 1/2) = 2/3, and the user who was not went on to item 1
    >>> bandit.memory.statistics.round(3).tolist()  # attracted of examined, then satisfied of clicked
    [[[1.0, 1.0], [0.0, 0.333]], [[0.667, 1.0], [0.0, 0.0]]]
    """

    name: ClassVar[str] = "dbn-ts"
    made_for: ClassVar[str] = "dbn"
    num_tables: ClassVar[int | None] = 2

    continuation: float = 0.9

    def settings(self) -> tuple[float, ...]:
        return self.prior_clicks, self.prior_skips, self.continuation, self.continuation, 0.0

    def _check_settings(self) -> None:
        super()._check_settings()
        check_continuation((self.continuation,))
