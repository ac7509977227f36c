"""CascadeUCB1 (Kveton et al. 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.index import UCB1Bandit


@dataclass(kw_only=True, eq=False)
class CascadeUCB1(UCB1Bandit):
    """Feedback as of CascadeKL-UCB."""

    name: ClassVar[str] = "cascade-ucb1"
    made_for: ClassVar[str] = "cascade"

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.feedback import learn_to_first_click
        from rankpolicy.kernels.bandits.index import rank_by_ucb1

        return Program(rank_by_ucb1, learn_to_first_click)
