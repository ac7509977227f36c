"""dcmTS: Thompson sampling for users who may click several items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.index import ThompsonBandit


@dataclass(kw_only=True, eq=False)
class DcmTS(ThompsonBandit):
    """Feedback as of dcmKL-UCB; every list shows the items that are best in one draw from the posterior of attraction."""

    name: ClassVar[str] = "dcm-ts"

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.feedback import learn_to_last_click
        from rankpolicy.kernels.bandits.index import rank_by_thompson_sampling

        return Program(rank_by_thompson_sampling, learn_to_last_click)
