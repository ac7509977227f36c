"""UBM-UCB: a confidence bound for users of the user browsing model (Dupret & Piwowarski 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.ubm import UbmBandit
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.settings import documented, setting


@documented
@dataclass(kw_only=True, eq=False)
class UbmUCB(UbmBandit):
    """The index of PBM-UCB (Lagrée, Vernade & Cappé 2016), for users whose examination depends on the last click above too.

    S / E + sqrt(N / E) sqrt(radius log t / E), S clicks, N lists, E = sum of examination over the lists of an item. The bound holds here as
    there, because a click has probability e a given the clicks above it. The best item comes first. No regret bound is known.

    >>> bandit = UbmUCB(num_items=3, cutoff=2, examination=((1.0,), (0.5, 1.0)), radius=0.0)
    >>> bandit.learn_log([[0, 1], [0, 2], [2, 1]], [[1, 1], [0, 1], [0, 0]])  # S / E = 1 / 2, 1 / 1.5, 1 / 1.5
    >>> bandit.learn([2, 0], [0, 0])  # 1 / 2.5, 1 / 1.5, 1 / 2.5
    >>> bandit.rank()[0].item()
    1
    """

    name: ClassVar[str] = "ubm-ucb"

    radius: float = setting(0.5, "Factor of log t in the confidence radius. Larger values explore more.", at_least=0)

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.examination import learn_by_last_click_above, rank_examined_by_ucb

        return Program(rank_examined_by_ucb, learn_by_last_click_above)

    def _numbers(self) -> tuple[float, ...]:
        return self.radius, 0.0, 0.0, *self._cells()
