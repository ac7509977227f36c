"""CascadeLinTS: linear Thompson sampling for users who stop at the first click (Zong et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.linear import LinearTS


@dataclass(kw_only=True, eq=False)
class CascadeLinTS(LinearTS):
    """Feedback as of CascadeKL-UCB: down to the first click."""

    name: ClassVar[str] = "cascade-lin-ts"
    made_for: ClassVar[str] = "cascade"

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.linear import learn_linear_to_first_click, rank_by_linear_thompson_sampling

        return Program(rank_by_linear_thompson_sampling, learn_linear_to_first_click)
