"""Random lists: the reference point of every bandit, and the traffic from which position bias is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.base import Bandit
from rankpolicy.bandits.inputs import checked_items
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.settings import documented


@documented
@dataclass(kw_only=True, eq=False)
class RandomLists(Bandit):
    """Every list of available items is equally likely, whatever was clicked; it learns nothing, so it cannot forget either.

    >>> RandomLists(num_items=4, cutoff=2).propensities([3, 0])  # 1/4, then 1/3
    array([0.25      , 0.33333333])
    """

    name: ClassVar[str] = "random"

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.random import learn_nothing, rank_at_random

        return Program(rank_at_random, learn_nothing)

    def propensities(self, ranking: ArrayLike, available: ArrayLike | None = None) -> NDArray[np.float64]:
        """The probability (position,) of each item of a list at its position: 1 / number of items not yet placed.

        Parameters
        ----------
        ranking
            Item numbers, best first.
        available
            Items that could have been shown; None: all.
        """
        items = checked_items(ranking, num_items=self.num_items, what="a list")
        return self._filled_propensities(self.memory, self._available(available), items)

    def propensity_step(self) -> Callable[..., None]:
        """The function that fills propensities; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.random import fill_random_propensities

        step: Callable[..., None] = fill_random_propensities
        return step

    def _can_forget(self) -> bool:
        return False
