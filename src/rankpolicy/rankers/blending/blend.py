"""How scores of different rankers become one: a common scale, the share of each kind, and the temperature of the policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.types import Reward

Floats = NDArray[np.float64]

SHARES = tuple(eighths / 8 for eighths in range(9))
SHARPNESSES = tuple(float(2.0**power) for power in np.arange(-1, 6.5, 0.5))
KEPT = 0.98
_ROUNDING = 1e-6  # float32 scores of networks are this exact
# Choices this close to the best, in standard errors of the paired difference, count as equal to it.
TOLERANCE = 1.0


def spread_within_queries(scores: Floats, dataset: RankingDataset) -> float:
    """Standard deviation of scores (items,) around the means of their queries: what orders items, not what queries have in common.

    Differences that are rounding errors count as 0.

    >>> from rankpolicy.data.arrays import from_arrays
    >>> spread_within_queries(np.array([1.0, 3.0, 10.0, 14.0]), from_arrays(np.zeros((4, 1)), group=[2, 2]))  # sqrt((1+1+4+4)/4)
    1.58...
    """
    means = np.add.reduceat(scores, dataset.query_offsets[:-1]) / dataset.sizes
    spread = float(np.sqrt(np.mean(np.square(scores - np.repeat(means, dataset.sizes)))))
    return spread if spread > _ROUNDING * float(np.abs(scores).max()) else 0.0


def chosen_share(first: Floats, second: Floats, dataset: RankingDataset, reward: Reward) -> float:
    """The share of ``second`` in (1 - share) * first + share * second: of about equally good ones the nearest to one half."""
    rewards = [_rewards((1 - share) * first + share * second, dataset, reward) for share in SHARES]
    near = _about_best(rewards, dataset.query_weights)
    return min((SHARES[index] for index in near), key=lambda share: abs(share - 0.5))


def is_better(scores: Floats, others: Floats, dataset: RankingDataset, reward: Reward) -> bool:
    """Whether sorting by ``scores`` is worth more than by ``others``, by more than ``TOLERANCE`` standard errors of the difference."""
    mean, error = _difference(
        _rewards(scores, dataset, reward), _rewards(others, dataset, reward), dataset.query_weights
    )
    return mean > TOLERANCE * error


def chosen_sharpness(scores: Floats, dataset: RankingDataset, reward: Reward) -> float:
    """The lowest factor on the scores with which the Plackett-Luce policy keeps ``KEPT`` of what sorting gains over a random order.

    The expected reward of a policy is highest, or nearly so, where it sorts: then it never explores, and its propensities say nothing. A
    lower factor gives up little reward for a policy that says how sure it is of an order.
    """
    padding = dataset.padding()
    padded = padding.pad(scores)
    labels = padding.pad(dataset.labels_by_query.astype(np.float64))
    forms = reward.additive_forms(labels, padding.mask)

    def expected(factor: float) -> float:
        worth = np.zeros(len(padded))
        for rank_weights, item_values in forms:
            worth += (item_values * PlackettLuce(factor * padded, padding.mask).exposure(rank_weights)).sum(-1)
        return mean_over_queries(worth, dataset.query_weights)

    at_random, rewards = expected(0.0), [expected(factor) for factor in SHARPNESSES]
    least_reward = at_random + KEPT * (max(rewards) - at_random)
    return next(
        factor for factor, expected_reward in zip(SHARPNESSES, rewards, strict=True) if expected_reward >= least_reward
    )


def _rewards(scores: Floats, dataset: RankingDataset, reward: Reward) -> Floats:
    return np.asarray(evaluate_scores(scores, dataset, [reward])[:, 0], np.float64)


def _about_best(rewards: Sequence[Floats], query_weights: Floats | None) -> list[int]:
    """The places of the choices whose mean reward is within ``TOLERANCE`` standard errors of the paired difference to the best."""
    means = [mean_over_queries(each, query_weights) for each in rewards]
    best = rewards[int(np.argmax(means))]
    near_best = []
    for index, each in enumerate(rewards):
        mean, error = _difference(best, each, query_weights)
        if mean <= TOLERANCE * error:
            near_best.append(index)
    return near_best


def _difference(first: Floats, second: Floats, query_weights: Floats | None) -> tuple[float, float]:
    """Mean over queries of first - second, and its standard error."""
    measured = ~np.isnan(first)
    weights = np.ones(int(measured.sum())) if query_weights is None else np.asarray(query_weights, float)[measured]
    shares = weights / weights.sum()
    difference = (first - second)[measured]
    mean = float(shares @ difference)
    return mean, float(np.sqrt(np.square(shares) @ np.square(difference - mean)))
