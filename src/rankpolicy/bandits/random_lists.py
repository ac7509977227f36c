"""Random lists: what every bandit must beat, and the traffic from which position bias is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.base import Bandit, Program
from rankpolicy.bandits.inputs import checked_items


@dataclass(kw_only=True, eq=False)
class RandomLists(Bandit):
    """Every list of available items is equally likely, whatever was clicked.

    >>> RandomLists(num_items=4, cutoff=2).propensities([3, 0])  # 1/4, then 1/3
    array([0.25      , 0.33333333])
    """

    name: ClassVar[str] = "random"

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.random import learn_nothing, rank_at_random

        return Program(rank_at_random, learn_nothing)

    def propensities(self, ranking: ArrayLike, available: ArrayLike | None = None) -> NDArray[np.float64]:
        length = len(checked_items(ranking, num_items=self.num_items, what="a list"))
        return 1.0 / (len(self._available(available)) - np.arange(length))
