"""Ranked bandits: one bandit per position, KL-UCB or Exp3 (Radlinski, Kleinberg & Joachims 2008)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits.bandit import Bandit, checked_items
from rankpolicy.bandits.index import KLUCB, LOG_LOG_WEIGHT
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.kernels.bandits.memory import Program
from rankpolicy.types import RankPolicyError


@settings_class
class RankedKLUCB(Bandit):
    """One KL-UCB bandit per position (ranked bandits, Radlinski, Kleinberg & Joachims 2008), as a reference point.

    Each position shows its best item that is not placed above it, and learns when it was examined: down to the last click. Positions share
    nothing, so it learns about ``cutoff`` times more slowly than dcmKL-UCB.
    """

    name: ClassVar[str] = "ranked-kl-ucb"
    num_tables: ClassVar[int | None] = None

    log_log_weight: float = setting(3.0, LOG_LOG_WEIGHT, at_least=0)

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.ranked import learn_positions, rank_positions_by

        return Program(rank_positions_by(KLUCB.threshold, KLUCB.value), learn_positions)

    def _numbers(self) -> tuple[float, ...]:
        return (self.log_log_weight,)


@settings_class
class RankedExp3(Bandit):
    """One Exp3 bandit per position (Radlinski, Kleinberg & Joachims 2008). It assumes nothing about users, and learns slowly.

    A position draws from exp(-rate loss) over the n items not placed above it, rate = sqrt(log n / (n t)) (Bubeck & Cesa-Bianchi 2012). An
    examined item without a click is a loss of 1, divided by the probability with which the item was last placed there; so feedback should
    come before the next list is ranked. Lists that it did not rank itself teach it nothing.
    """

    name: ClassVar[str] = "ranked-exp3"
    is_additive: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = True
    num_tables: ClassVar[int | None] = None

    def program(self) -> Program:
        """The step functions; compiled code is loaded here and not before."""
        from rankpolicy.kernels.bandits.ranked import learn_exp3, rank_by_exp3

        return Program(rank_by_exp3, learn_exp3)

    def propensities(self, ranking: ArrayLike, available: ArrayLike | None = None) -> NDArray[np.float64]:
        """The probability (position,) of each item of a list at its position, given the items above it, if it were ranked now.

        Parameters
        ----------
        ranking
            Item numbers, best first, at most ``cutoff``.
        available
            Items that could have been shown; None: all.
        """
        from rankpolicy.kernels.bandits.ranked import fill_exp3_probabilities

        remaining = self._available(available)
        result = []
        for position, item in enumerate(checked_items(ranking, num_items=self.num_items, what="a list")):
            if item not in remaining or position >= self.cutoff:
                raise RankPolicyError(
                    f"a list must hold at most {self.cutoff} available items; got {item} at position {position}."
                )
            probabilities = np.empty(len(remaining))
            fill_exp3_probabilities(self.memory, position, remaining, probabilities)
            result.append(probabilities[remaining == item][0])
            remaining = remaining[remaining != item]
        return np.array(result)

    def _check_statistics(self, statistics: NDArray[np.float64]) -> None:
        losses, propensities = statistics[..., 0], statistics[..., 1]
        if (losses < 0).any() or (propensities < 0).any() or (propensities > 1).any():
            raise RankPolicyError("losses must be at least 0 and propensities from 0 to 1; got others.")
