"""PBM-UCB: a confidence bound for users of the position-based model (Lagrée, Vernade & Cappé 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.examined import ExaminedBandit
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.settings import documented, setting


@documented
@dataclass(kw_only=True, eq=False)
class PbmUCB(ExaminedBandit):
    """PBM-UCB (Lagrée, Vernade & Cappé 2016), for users who examine each position with a fixed probability.

    The index is S / E + sqrt(N / E) sqrt(radius log t / E), S clicks, N lists, E = sum of examination over them. The best item goes where
    examination is highest.

    >>> bandit = PbmUCB(num_items=3, cutoff=2, examination=(0.5, 1.0), radius=0.0)
    >>> bandit.learn_log([[0, 1], [0, 2]], [[1, 1], [0, 0]])  # S / E = 1 / 1, 1 / 1, 0 / 1
    >>> bandit.learn([1, 2], [1, 0])  # 1, 2 / 1.5, 0
    >>> bandit.rank()
    array([0, 1])
    """

    name: ClassVar[str] = "pbm-ucb"
    made_for: ClassVar[str] = "pbm"
    num_tables: ClassVar[int | None] = None

    examination: tuple[float, ...] | None = setting(
        None,
        "Examination probability of each position; None estimates it from the bandit's own lists.",
        above=0,
        at_most=1,
    )
    radius: float = setting(0.5, "Factor of log t in the confidence radius. Larger values explore more.", at_least=0)

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.examination import learn_by_position, rank_examined_by_ucb

        return Program(rank_examined_by_ucb, learn_by_position)

    def _numbers(self) -> tuple[float, ...]:
        return self.radius, 0.0, 1.0, *(self.examination or ())

    def _check(self) -> None:
        self._check_number(self.examination, self.cutoff)
