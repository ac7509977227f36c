"""dcmKL-UCB (Katariya et al. 2016): KL-UCB on what a user who scans from the top and may click several items tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.index import KLUCBBandit


@dataclass(kw_only=True, eq=False)
class DcmKLUCB(KLUCBBandit):
    """Every item down to the last click was examined, all of them where there was none; below it nothing is known.

    Shows the items of the largest indices, largest first: best where a click at a higher position is likelier to end the search.

    >>> bandit = DcmKLUCB(num_items=3, cutoff=2)
    >>> bandit.learn([2, 0], [1, 0])
    >>> bandit.memory.statistics[0].tolist()  # clicks and observations: item 0 came below the last click
    [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    """

    name: ClassVar[str] = "dcm-kl-ucb"

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.feedback import learn_to_last_click
        from rankpolicy.kernels.bandits.index import rank_by_kl_ucb

        return Program(rank_by_kl_ucb, learn_to_last_click)
