"""Bandits that explore uniformly at random, so that their propensities are known: epsilon-greedy, and random lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rankpolicy.bandits.bandit import Bandit
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.kernels.bandits.memory import Program


@settings_class
class EpsilonGreedy(Bandit):
    """At each position a random item not yet placed with probability ``epsilon``, otherwise the one with the highest click rate.

    Feedback is that of dcmKL-UCB. Items that were never observed come before all others; ties are broken at random. Its propensities are
    known, so its logs serve off-policy estimates.

    >>> bandit = EpsilonGreedy(num_items=3, cutoff=2, epsilon=0.3)
    >>> bandit.learn_log([[0, 1], [2, -1]], [[0, 1], [0, 0]])
    >>> bandit.propensities([1, 0])  # 0.7 + 0.3 / 3 as the best item; then one of two equal ones
    array([0.8, 0.5])
    """

    name: ClassVar[str] = "epsilon-greedy"

    epsilon: float = setting(
        0.05, "Probability of a random item at each position. Larger values explore more.", at_least=0, at_most=1
    )

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.counts import learn_items
        from rankpolicy.kernels.bandits.uniform import rank_epsilon_greedy

        return Program(rank_epsilon_greedy, learn_items)

    def propensity_step(self) -> Callable[..., None]:
        """The function that fills propensities; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.uniform import fill_epsilon_greedy_propensities

        step: Callable[..., None] = fill_epsilon_greedy_propensities
        return step

    def _numbers(self) -> tuple[float, ...]:
        return (self.epsilon,)


@settings_class
class RandomLists(Bandit):
    """Every list of available items is equally likely, whatever was clicked; it learns nothing, so it cannot forget either.

    >>> RandomLists(num_items=4, cutoff=2).propensities([3, 0])  # 1/4, then 1/3
    array([0.25      , 0.33333333])
    """

    name: ClassVar[str] = "random"

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.uniform import learn_nothing, rank_at_random

        return Program(rank_at_random, learn_nothing)

    def propensity_step(self) -> Callable[..., None]:
        """The function that fills propensities; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.uniform import fill_random_propensities

        step: Callable[..., None] = fill_random_propensities
        return step

    def _can_forget(self) -> bool:
        return False
