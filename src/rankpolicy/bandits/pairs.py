"""Bandits without a click model, TopRank and BubbleRank: they compare pairs of items whose order was random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.bandit import Bandit, Items, checked_items
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class PairBandit(Bandit):
    """A bandit that compares pairs of items whose order was random.

    Which pairs these were is known for the last ranked list only, so feedback must come before the next list is ranked. Lists that it
    did not rank itself teach it nothing useful, and a list cannot be taken back.
    """

    is_additive: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = True
    num_columns: ClassVar[int | None] = None

    failure_probability: float = setting(
        1e-4,
        "Probability of a wrong conclusion about a pair; best about 1 / number of lists to come.",
        above=0,
        below=1,
    )

    def _numbers(self) -> tuple[float, ...]:
        return (self.failure_probability,)

    def _check_statistics(self, statistics: NDArray[np.float64]) -> None:
        """Differences of clicks and flags: every finite number is possible."""


@settings_class
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


@settings_class
class BubbleRank(PairBandit):
    """BubbleRank (Li et al. 2019): shows the leading ranking, at first ``base_ranking``, with some neighbours exchanged.

    Every other pair of neighbours, odd and even ones in turn, is in random order until the upper item is known to be better; when the
    lower one is, they change places for good. Item i is better than j once S > 2 sqrt(N log(1 / delta)), S = sum of click of i -
    click of j over lists with the pair in random order, N the number of those with exactly one click, delta = failure_probability. No
    item is ever shown further than one position from its place, so a list has at most (cutoff + 1) / 2 more pairs in the wrong order
    than the leading ranking, which only improves except for mistakes of probability delta.

    The paper shows all items. Here the last item shown has the first one not shown as its neighbour, so that this one can enter from below;
    the items after it wait until others are not available. Use it to put a list in order, not to find items. Feedback must come before the
    next list is ranked.
    """

    name: ClassVar[str] = "bubble-rank"
    num_tables: ClassVar[int | None] = 2

    base_ranking: tuple[int, ...] | None = setting(
        None, "The ranking to start from, best first. Items that are not in it follow by their numbers; None: all do."
    )

    def forget_items(self, items: ArrayLike) -> None:
        """Return items to their places in the base ranking; the items that stood there move to where they were.

        Parameters
        ----------
        items
            Item numbers.
        """
        forgotten = checked_items(items, num_items=self.num_items, what="items")
        positions = self._positions()
        base = self._base_positions()
        for item in forgotten:
            holder = np.flatnonzero(positions == base[item])[0]
            positions[holder], positions[item] = positions[item], base[item]
        super().forget_items(items)
        np.fill_diagonal(self.memory.statistics[0], positions)

    def leading_ranking(self) -> Items:
        """All items, best first, as far as is known."""
        return np.argsort(self._positions())

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.pairs import learn_bubbles, rank_by_bubbles

        return Program(rank_by_bubbles, learn_bubbles)

    def _positions(self) -> NDArray[np.float64]:
        return np.array(self.memory.statistics[0].diagonal())

    def _base_positions(self) -> NDArray[np.float64]:
        first = np.array(self.base_ranking or (), np.int64)
        ranking = np.concatenate([first, np.setdiff1d(np.arange(self.num_items), first)])
        positions = np.empty(self.num_items)
        positions[ranking] = np.arange(self.num_items)
        return positions

    def _empty_statistics(self) -> NDArray[np.float64]:
        statistics = np.zeros((2, self.num_items, self.num_items))
        np.fill_diagonal(statistics[0], self._base_positions())
        return statistics

    def _check(self) -> None:
        if self.base_ranking is not None:
            checked_items(self.base_ranking, num_items=self.num_items, what="base_ranking")

    def _check_statistics(self, statistics: NDArray[np.float64]) -> None:
        # The step functions use both diagonals as numbers of places and items.
        positions, partners = statistics[0].diagonal(), statistics[1].diagonal()
        if not np.array_equal(np.sort(positions), np.arange(self.num_items)):
            raise RankPolicyError("places of the leading ranking must be 0, 1, 2, ..., each once; got others.")
        if (partners != partners.round()).any() or partners.min() < 0 or partners.max() > self.num_items:
            raise RankPolicyError(f"partners must be whole numbers from 0 to {self.num_items}; got others.")
