"""dcmUCB1: UCB1 in the place of KL-UCB, for users who may click several items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.index import UCB1Bandit


@dataclass(kw_only=True, eq=False)
class DcmUCB1(UCB1Bandit):
    """Feedback as of dcmKL-UCB, index as of CascadeUCB1."""

    name: ClassVar[str] = "dcm-ucb1"

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.feedback import learn_to_last_click
        from rankpolicy.kernels.bandits.index import rank_by_ucb1

        return Program(rank_by_ucb1, learn_to_last_click)
