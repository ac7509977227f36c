"""Bandits that learn at which positions users stop, and show the best items there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.index import KLUCB, CountIndex, IndexPreset, ThompsonSampling
from rankpolicy.declarations.settings import documented
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class LearnedOrder(CountIndex, IndexPreset):
    """An index of expected counts, with the positions ordered by what was learned about them (kernels/bandits/learned_order.py)."""

    is_additive: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = True
    learns_order: ClassVar[bool] = True

    def steps(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.counts import rank_items_by
        from rankpolicy.kernels.bandits.learned_order import learn_attraction_and_stops, place_by_learned_order

        return Program(rank_items_by(self.threshold, self.value, place_by_learned_order), learn_attraction_and_stops)

    def _index_statistics(self, num_items: int) -> NDArray[np.float64]:
        return np.zeros((1 + 2 * self.cutoff, num_items, 2))

    def _check_statistics(self, statistics: NDArray[np.float64]) -> None:
        super()._check_statistics(statistics[:1])
        if (statistics < 0).any():
            raise RankPolicyError("statistics must be at least 0; got others.")


@documented
@dataclass(kw_only=True, eq=False)
class DcmFull(KLUCB, LearnedOrder):
    """KL-UCB for DCM users whose v is not known: it learns the attraction of items and the order of v together.

    The k-th largest index goes where the k-th largest v is. Another click below position k has probability (1 - v(k)) times P(a click
    below | not stopped), so 1 - v(k) is the first divided by the sum of the second, drawn towards the value of all positions where little
    is known. Items below the last click count as examined with the probability that the user went on. Users who look less at lower
    positions seem to stop after clicks there, so v(k) counts less where items have fewer clicks than they promise although nothing was
    clicked above, and not at all from two thirds of the promise on; DCM users always examine the next item then.

    No click can follow the last position, so v(K) leaves no trace, whatever the bandit shows: the last position is taken for the least, and
    no bandit has sublinear regret for every v. No bound is known for users for whom v(K) is the smallest.

    >>> bandit = DcmFull(num_items=3, cutoff=3)
    >>> bandit.learn_log([[0, 1, 2], [1, 0, 2]] * 40, [[1, 1, 0], [0, 1, 0]] * 40)  # all go on after position 0, none after position 1
    >>> bandit.rank()  # the best item is shown where it ends the search
    array([1, 0, 2])
    """

    name: ClassVar[str] = "dcm-full"


@documented
@dataclass(kw_only=True, eq=False)
class DcmFullTS(ThompsonSampling, LearnedOrder):
    """Thompson sampling of attraction with the order of positions that DcmFull learns: less regret in practice, no guarantee."""

    name: ClassVar[str] = "dcm-full-ts"
