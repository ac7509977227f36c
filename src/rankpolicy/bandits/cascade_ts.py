"""CascadeTS (Cheung, Tan & Zhong 2019; Zhong, Cheung & Tan 2021): Thompson sampling for users who stop at the first click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.index import ThompsonBandit


@dataclass(kw_only=True, eq=False)
class CascadeTS(ThompsonBandit):
    """Feedback as of CascadeKL-UCB, with Beta posteriors."""

    name: ClassVar[str] = "cascade-ts"
    made_for: ClassVar[str] = "cascade"

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.feedback import learn_to_first_click
        from rankpolicy.kernels.bandits.index import rank_by_thompson_sampling

        return Program(rank_by_thompson_sampling, learn_to_first_click)
