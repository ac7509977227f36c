"""CascadeKL-UCB (Kveton et al. 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.index import KLUCBBandit


@dataclass(kw_only=True, eq=False)
class CascadeKLUCB(KLUCBBandit):
    """Every item down to the first click was examined, all of them where there was none; later clicks are not used.

    >>> bandit = CascadeKLUCB(num_items=3, cutoff=3)
    >>> bandit.learn([2, 0, 1], [0, 1, 1])
    >>> bandit.memory.statistics[0].tolist()
    [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """

    name: ClassVar[str] = "cascade-kl-ucb"
    made_for: ClassVar[str] = "cascade"

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.feedback import learn_to_first_click
        from rankpolicy.kernels.bandits.index import rank_by_kl_ucb

        return Program(rank_by_kl_ucb, learn_to_first_click)
