"""What lists that were shown prove about policies: promotion of a better one, and the account of what the new one cost.

A list drawn from a policy m with known probabilities earns Σ_p θ_p click_p. For users who read from the top, the same list says what
another policy π would have earned: Σ_p w_p θ_p click_p, w_p = π(first p items) / m(first p items), is unbiased for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.online.lower_bound import SumLowerBound
from rankpolicy.online.online_ranker import Floats

MOST_WEIGHT = 2.5  # W: larger weights of the contender are lowered, for a narrower range


def error_of_test(number: int, error: float) -> float:
    """The error of test ``number`` of a sequence without end, from 1; they sum to ``error``.

    >>> [round(error_of_test(number, 0.06), 6) for number in (1, 2, 3)]
    [0.03, 0.01, 0.005]
    """
    return error / (number * (number + 1))


class Earnings(NamedTuple):
    """What a list may earn: θ (position,) at each click, or at the first alone."""

    position_weights: Floats
    of_first_click: bool

    @property
    def most(self) -> float:
        """Of one list."""
        return 1.0 if self.of_first_click else float(self.position_weights.sum())

    def of(self, clicks: Floats) -> Floats:
        """θ_p click_p (list, position)."""
        counted = clicks * (np.cumsum(clicks, 1) == 1) if self.of_first_click else clicks
        return np.asarray(counted * self.position_weights[: clicks.shape[1]])


class Trial:
    """Test of a frozen contender against the policy that serves, by the lists that are shown in the meantime.

    Σ_p (min(w_p, W) - w_p of the serving policy) (θ_p click_p - q_p) - q_p (1 - W / w'_p)⁺, with w the weights of the contender, has a mean
    no higher than what it earns more, for any q: w' is the weight of a list that the contender would have shown, drawn here and shown to
    nobody, and makes up for what is cut from w. Subtracting q, the mean earnings of each position, halves the variance or better.

    It ends with a proof that the contender earned more on these lists, or after so many lists without one.
    """

    def __init__(
        self, weights: Floats, *, expected: Floats, earnings: Earnings, error: float, share: float, patience: int
    ) -> None:
        self.weights, self.expected, self.patience = weights, expected, patience
        self.bound = SumLowerBound(range=_lowest_term(expected, earnings, share), error=error)

    def add(self, gains: Floats, *, contender: Floats, serving: Floats, drawn: Floats) -> None:
        """Take lists: θ click, and the log weights of contender, serving policy and the contender's own list; (list, position)."""
        expected = self.expected[: gains.shape[1]]
        cut = (1 - MOST_WEIGHT * np.exp(-drawn.clip(min=0))).clip(0)
        differences = np.exp(contender.clip(max=np.log(MOST_WEIGHT))) - np.exp(serving)
        self.bound.add((differences * (gains - expected) - expected * cut).sum(1))

    @property
    def is_proven(self) -> bool:
        """Whether the contender is better."""
        return self.bound.value > 0

    @property
    def is_over(self) -> bool:
        """Whether it has had its lists."""
        return bool(self.bound.state[0] >= self.patience)


def _lowest_term(expected: Floats, earnings: Earnings, share: float) -> float:
    """What no term of a trial is below, without its sign.

    The serving policy has at least ``1 - share`` of the probability of every list, so its own weight is at most 1 / (1 - share): a click
    costs (θ - q) / (1 - share) at most, no click W q, and what is drawn q.
    """
    of_click, of_none = (earnings.position_weights - expected) / (1 - share), MOST_WEIGHT * expected
    if earnings.of_first_click:  # at one position at most
        return float(expected.sum() + of_none.sum() + max(0.0, (of_click - of_none).max()))
    return float(expected.sum() + np.maximum(of_click, of_none).sum())


class LossAccount:
    """Bounds how far the lists of new policies earn less than those of the logger would have, whatever users do.

    The logger draws a share of all lists, so weights w of its lists are at most 1 / share, and Σ_p (1 - w_p)(θ_p click_p - q_p), with any
    q known before the list, has as mean what the shown policy earns more than the logger. A block of lists ends when that sum is surely
    positive, which restores the budget up to its start, or when a loss of half of what is left of the budget cannot be excluded: then the
    logger must serve again. With probability 1 - error, the sum over all lists, and over those since the beginning of any block, is never
    below -budget, but for lists that were shown and not learned yet.
    """

    def __init__(self, *, budget: float, error: float, most_reward: float, share: float) -> None:
        self.budget, self.error, self.share, self.most_reward = budget, error, share, most_reward
        self.left = budget
        self.number = 0
        self._open_block()

    def _open_block(self) -> None:
        self.number += 1
        # q sums to most_reward at most, and counts at most once; what is above it counts at most 1 / share - 1 times.
        self.bound = SumLowerBound(range=self.most_reward / self.share, error=error_of_test(self.number, self.error))
        self.allowance = self.left / 2

    def add(self, gains: Floats, *, logger: Floats, expected: Floats) -> bool:
        """Take lists: θ click and log weights of the logger (list, position), and q; whether the new policy may go on."""
        self.bound.add(((1 - np.exp(logger)) * (gains - expected)).sum(1))
        if self.bound.value > 0:
            self.left = min(self.budget, self.left + self.bound.value)
            self._open_block()
        return self.bound.value >= -self.allowance

    def close_block(self) -> None:
        """Book what the block has lost at most; the logger serves from now on."""
        self.left = max(0.0, self.left + min(0.0, self.bound.value))
        self._open_block()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that was booked."""
        numbers = np.array([self.left, self.number, self.allowance, *self.bound.state])
        return {"account": numbers}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what ``arrays`` gave."""
        self.left, number, allowance, *state = arrays["account"].tolist()
        self.number = int(number) - 1
        self._open_block()
        self.allowance, self.bound.state = allowance, np.array(state)
