"""PBM-UCB: a confidence bound for users who examine each position with a probability of its own (Lagrée, Vernade & Cappé 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.examined import ExaminedBandit
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class PbmUCB(ExaminedBandit):
    """Index S / E + sqrt(N / E) sqrt(c log t / E), S clicks, N lists, E = sum of ``examination`` over them, c = ``radius``.

    The best item goes where examination is highest.

    >>> bandit = PbmUCB(num_items=3, cutoff=2, examination=(0.5, 1.0), radius=0.0)
    >>> bandit.learn_log([[0, 1], [0, 2]], [[1, 1], [0, 0]])  # S / E = 1 / 1, 1 / 1, 0 / 1
    >>> bandit.learn([1, 2], [1, 0])  # 1, 2 / 1.5, 0
    >>> bandit.rank()
    array([0, 1])
    """

    name: ClassVar[str] = "pbm-ucb"
    made_for: ClassVar[str] = "pbm"
    num_tables: ClassVar[int | None] = None

    examination: tuple[float, ...] | None = None
    radius: float = 0.5

    def settings(self) -> tuple[float, ...]:
        return self.radius, 0.0, 1.0, *(self.examination or ())

    def _check_settings(self) -> None:
        self._check_examination(self.examination, self.cutoff)
        if self.radius < 0:
            raise RankPolicyError(f"radius must be 0 or more; got {self.radius}.")

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.examination import learn_by_position, rank_examined_by_ucb

        return Program(rank_examined_by_ucb, learn_by_position)
