"""BubbleRank: safe exploration around a ranking that is in use (Li, Kveton, Lattimore, Markov, de Rijke, Zoghi & Szepesvári 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.base import Items, Program
from rankpolicy.bandits.inputs import checked_items
from rankpolicy.bandits.pairs import PairBandit


@dataclass(kw_only=True, eq=False)
class BubbleRank(PairBandit):
    """Shows the leading ranking, at first ``base_ranking``, with some neighbours in exchanged order.

    Every other pair of neighbours, odd and even ones in turn, is in random order until the upper one is better for sure; when the lower one
    is, they change places for good: i is better than j once S > 2 sqrt(N log(1 / delta)), S = sum of click of i - click of j over lists
    with the pair in random order, N the number of those with just one click, delta = ``failure_probability``. No item is ever shown further
    than one position from its place, so a list has at most (cutoff + 1) / 2 pairs in the wrong order more than the leading ranking, and
    that one only gets better but for mistakes of probability delta.

    The paper shows all items. Here the last item shown has the first that is not as its neighbour, so that one can come in from below; the
    items under it wait until others are not available. This is for putting a list in order, not for finding items.
    """

    name: ClassVar[str] = "bubble-rank"
    num_tables: ClassVar[int | None] = 2

    base_ranking: tuple[int, ...] | None = None  # items that are not in it follow by their numbers

    def forget_items(self, items: ArrayLike) -> None:
        """The items return to their places in the base ranking; what stood there moves to where they were."""
        forgotten = checked_items(items, num_items=self.num_items, what="items")
        places = self._places()
        base = self._base_places()
        for item in forgotten:
            holder = np.flatnonzero(places == base[item])[0]
            places[holder], places[item] = places[item], base[item]
        super().forget_items(items)
        np.fill_diagonal(self.memory.statistics[0], places)

    def leading_ranking(self) -> Items:
        """All items, best first, as far as is known."""
        return np.argsort(self._places())

    def _places(self) -> NDArray[np.float64]:
        return self.memory.statistics[0].diagonal().copy()

    def _base_places(self) -> NDArray[np.float64]:
        first = np.array(self.base_ranking or (), np.int64)
        ranking = np.concatenate([first, np.setdiff1d(np.arange(self.num_items), first)])
        places = np.empty(self.num_items)
        places[ranking] = np.arange(self.num_items)
        return places

    def _empty_statistics(self) -> NDArray[np.float64]:
        statistics = np.zeros((2, self.num_items, self.num_items))
        np.fill_diagonal(statistics[0], self._base_places())
        return statistics

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.base_ranking is not None:
            checked_items(self.base_ranking, num_items=self.num_items, what="base_ranking")

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.pairs import learn_bubbles, rank_by_bubbles

        return Program(rank_by_bubbles, learn_bubbles)
