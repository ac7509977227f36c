"""RankedKL-UCB: a KL-UCB bandit at every position (ranked bandits of Radlinski, Kleinberg & Joachims 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.index import KLUCBBandit


@dataclass(kw_only=True, eq=False)
class RankedKLUCB(KLUCBBandit):
    """The position shows its best item that is not placed above it, and learns when it was examined: down to the last click.

    Positions share nothing, so it learns about ``cutoff`` times more slowly than dcmKL-UCB.
    """

    name: ClassVar[str] = "ranked-kl-ucb"
    num_tables: ClassVar[int | None] = None

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.ranked import learn_positions, rank_positions_by_kl_ucb

        return Program(rank_positions_by_kl_ucb, learn_positions)
