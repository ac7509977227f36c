"""Epsilon-greedy: the items most clicked so far, and now and then any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.base import Bandit, Program
from rankpolicy.bandits.inputs import checked_items
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False)
class EpsilonGreedy(Bandit):
    """At each position any item not yet placed with probability ``epsilon``, otherwise the one most clicked when observed.

    Feedback as of dcmKL-UCB. Items never observed come before all others; of equal ones any.

    >>> bandit = EpsilonGreedy(num_items=3, cutoff=2, epsilon=0.3)
    >>> bandit.learn_log([[0, 1], [2, -1]], [[0, 1], [0, 0]])
    >>> bandit.propensities([1, 0])  # 0.7 + 0.3 / 3 as the best; then as one of two that are equal
    array([0.8, 0.5])
    """

    name: ClassVar[str] = "epsilon-greedy"

    epsilon: float = 0.05

    def settings(self) -> tuple[float, ...]:
        return (self.epsilon,)

    def _check_settings(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise RankPolicyError(f"epsilon must be a probability; got {self.epsilon}.")

    @staticmethod
    def program() -> Program:
        from rankpolicy.kernels.bandits.feedback import learn_to_last_click
        from rankpolicy.kernels.bandits.random import rank_epsilon_greedy

        return Program(rank_epsilon_greedy, learn_to_last_click)

    def propensities(self, ranking: ArrayLike, available: ArrayLike | None = None) -> NDArray[np.float64]:
        from rankpolicy.kernels.bandits.random import click_rate

        left = self._available(available)
        result = []
        for item in checked_items(ranking, num_items=self.num_items, what="a list"):
            if item not in left:
                raise RankPolicyError(f"a list must hold available items; got {item}.")
            rates = np.array([click_rate(self.memory, other) for other in left])
            best = rates == rates.max()
            greedy = best[left == item][0] / best.sum()
            result.append(self.epsilon / len(left) + (1 - self.epsilon) * greedy)
            left = left[left != item]
        return np.array(result)
