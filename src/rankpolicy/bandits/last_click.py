"""Last-Click, a competitor of dcmKL-UCB (Katariya et al. 2016): clicks before the last are thrown away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.index import KLUCBBandit


@dataclass(kw_only=True, eq=False)
class LastClick(KLUCBBandit):
    """dcmKL-UCB fed with the last click only: items above it count as examined and not clicked.

    >>> bandit = LastClick(num_items=3, cutoff=3)
    >>> bandit.learn([2, 0, 1], [1, 1, 0])
    >>> bandit.memory.statistics[0].tolist()
    [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """

    name: ClassVar[str] = "last-click"

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.feedback import learn_last_click_only
        from rankpolicy.kernels.bandits.index import rank_by_kl_ucb

        return Program(rank_by_kl_ucb, learn_last_click_only)
