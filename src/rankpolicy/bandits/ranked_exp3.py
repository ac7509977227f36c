"""RankedExp3: an Exp3 bandit at every position (Radlinski, Kleinberg & Joachims 2008; rates of Bubeck & Cesa-Bianchi 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.base import Bandit, Program
from rankpolicy.bandits.inputs import checked_items
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class RankedExp3(Bandit):
    """A position draws from exp(-rate x loss) over the n items not placed above it, rate = sqrt(log n / (n t)).

    No click on an examined item is a loss of 1, divided by the probability with which the item was last placed there; so feedback should
    come before the next list is ranked. Lists that it did not rank itself teach it nothing. It assumes nothing of users, and is slow.
    """

    name: ClassVar[str] = "ranked-exp3"
    is_additive: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = True
    num_tables: ClassVar[int | None] = None

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.ranked import learn_exp3, rank_by_exp3

        return Program(rank_by_exp3, learn_exp3)

    def propensities(self, ranking: ArrayLike, available: ArrayLike | None = None) -> NDArray[np.float64]:
        from rankpolicy.kernels.bandits.ranked import fill_exp3_probabilities

        left = self._available(available)
        result = []
        for position, item in enumerate(checked_items(ranking, num_items=self.num_items, what="a list")):
            if item not in left or position >= self.cutoff:
                raise RankPolicyError(
                    f"a list must be at most {self.cutoff} available items; got {item} at position {position}."
                )
            probabilities = np.empty(len(left))
            fill_exp3_probabilities(self.memory, position, left, probabilities)
            result.append(probabilities[left == item][0])
            left = left[left != item]
        return np.array(result)
