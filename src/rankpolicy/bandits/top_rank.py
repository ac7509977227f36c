"""TopRank: ranking by what is known for sure of pairs, without a click model (Lattimore, Kveton, Li & Szepesvári 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.base import Program
from rankpolicy.bandits.pairs import PairBandit


@dataclass(kw_only=True, eq=False)
class TopRank(PairBandit):
    """Items stand in blocks: no item of a block is known to be worse than another of it, each is worse than one of the block above.

    Lists show the blocks from the top, each in random order, so that items of a block are seen under the same conditions. With U = click of
    i - click of j in lists with both in one block, j is worse than i once sum U >= sqrt(2 N log(c / delta sqrt N)), N = sum |U|,
    c = 4 sqrt(2 / pi) / erf(sqrt 2), delta = ``failure_probability``, best about 1 / number of lists to come.

    Its regret holds for all users who prefer attractive items and higher positions. Memory and time of a list grow with items squared.
    """

    name: ClassVar[str] = "top-rank"
    num_tables: ClassVar[int | None] = 3

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.pairs import learn_blocks, rank_by_blocks

        return Program(rank_by_blocks, learn_blocks)
