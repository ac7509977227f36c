"""dcmLinUCB: a linear confidence bound for users who may click several items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.linear import LinearUCB


@dataclass(kw_only=True, eq=False)
class DcmLinUCB(LinearUCB):
    """Feedback as of dcmKL-UCB: down to the last click."""

    name: ClassVar[str] = "dcm-lin-ucb"

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.linear import learn_linear_to_last_click, rank_by_linear_ucb

        return Program(rank_by_linear_ucb, learn_linear_to_last_click)
