"""TopRank: ranking by confident comparisons of pairs, without a click model (Lattimore, Kveton, Li & Szepesvári 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rankpolicy.bandits.pairs import PairBandit
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.settings import documented


@documented
@dataclass(kw_only=True, eq=False)
class TopRank(PairBandit):
    """TopRank (Lattimore et al. 2018), for users of unknown kind who prefer attractive items and higher positions.

    Items stand in blocks: no item of a block is known to be worse than another of it, and each is worse than one of the block above.
    Lists show the blocks from the top, each in random order, so that items of a block are seen under the same conditions. With U =
    click of i - click of j in lists with both in one block, j is worse than i once sum U >= sqrt(2 N log(c / delta sqrt N)), N = sum
    |U|, c = 4 sqrt(2 / pi) / erf(sqrt 2), delta = failure_probability.

    Memory and time per list grow with the square of the number of items. Feedback must come before the next list is ranked.
    """

    name: ClassVar[str] = "top-rank"
    num_tables: ClassVar[int | None] = 3

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.pairs import learn_blocks, rank_by_blocks

        return Program(rank_by_blocks, learn_blocks)
