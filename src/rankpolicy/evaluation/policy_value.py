"""Utility and unfairness of a policy on given queries, computed from exact exposures without sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.display import frozen_value
from rankpolicy.fairness import Disparity, FairnessAim, as_aim, encode_groups
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.types import RankPolicyError, Reward


class Exposer(Protocol):
    """Anything that computes the exposure of its policy, as every ranker does."""

    def exposure(self, data: RankingDataset, /, *, rank_weights: ArrayLike) -> NDArray[np.floating]:
        """Expected weight of each item's rank (items,), in the order of the rows that the dataset was made from."""
        ...


class Scorer(Protocol):
    """Anything that gives a score to each item, as every ranker does."""

    def predict(self, data: RankingDataset, /) -> NDArray[np.floating]:
        """Scores (items,), in the order of the rows that the dataset was made from."""
        ...


@frozen_value(kw_only=True)
class PolicyValue:
    """Utility and disparity of a policy, query by query."""

    utilities: NDArray[np.float64]
    disparities: Disparity
    exposure: NDArray[np.float64]
    merit: NDArray[np.float64]

    @property
    def utility(self) -> float:
        """Mean utility over queries; a query without relevant items counts as 0."""
        return float(self.utilities.mean())

    @property
    def disparity(self) -> float:
        """Mean disparity over the queries that have one."""
        return self.disparities.mean


class UniformPolicy:
    """The uniform random policy, as a reference point."""

    def exposure(self, data: RankingDataset, /, *, rank_weights: ArrayLike) -> NDArray[np.floating]:
        """Exposure of each item: the mean weight of the ranks of its query."""
        means = np.cumsum(np.asarray(rank_weights, dtype=np.float64)) / np.arange(1, len(np.asarray(rank_weights)) + 1)
        return data.in_row_order(np.repeat(means[data.sizes - 1], data.sizes))


@dataclass(frozen=True, slots=True)
class SortedPolicy:
    """The deterministic policy that ranks by descending score; equal scores keep the order of items."""

    ranker: Scorer

    def exposure(self, data: RankingDataset, /, *, rank_weights: ArrayLike) -> NDArray[np.floating]:
        """Exposure of each item: the weight of its rank."""
        scores = data.in_query_order(np.asarray(self.ranker.predict(data)))
        order = np.lexsort((np.arange(data.num_items), -scores, data.query_numbers))
        exposure = np.empty(data.num_items)
        exposure[order] = np.asarray(rank_weights, dtype=np.float64)[
            np.arange(data.num_items) - data.query_offsets[data.query_numbers]
        ]
        return data.in_row_order(exposure)


def policy_value(
    ranker: Exposer,
    dataset: RankingDataset,
    *,
    reward: Any = "ndcg",
    fairness: Any = "group",
) -> PolicyValue:
    """Expected reward and disparity of exposure of a ranker's policy, computed without sampling.

    utility = sum over items i of value_i E[weight of rank(i)] for a reward of rank weights times item values, such as "ndcg@10"; disparity
    is ``individual_disparity`` or ``group_disparity`` of the exposures with the position bias of ``fairness``, by default
    1 / log2(1 + rank).

    >>> from rankpolicy.data.arrays import from_arrays
    >>> two = from_arrays([[0.0], [1.0]], [2, 1], group=[2], protected=["a", "b"])
    >>> value = policy_value(UniformPolicy(), two, reward="dcg")
    >>> value.utility, value.disparity  # exposure 0.815 each: (3 + 1) 0.815, and 0.815 / 2 < 0.815 / 1
    (3.26185..., 0.0)
    """

    def exposures(rank_weights: NDArray[np.float64]) -> NDArray[np.floating]:
        return np.asarray(ranker.exposure(dataset, rank_weights=rank_weights))[None]

    return policy_values(exposures, dataset, reward=reward, fairness=fairness)[0]


def policy_values(
    exposures: Callable[[NDArray[np.float64]], NDArray[np.floating]],
    dataset: RankingDataset,
    *,
    reward: Any = "ndcg",
    fairness: Any = "group",
) -> list[PolicyValue]:
    """What ``policy_value`` gives for each of several policies over the same queries."""
    measure, aim = _additive(reward), as_aim(fairness)
    padding = dataset.padding()
    labels = padding.pad(dataset.labels_by_query.astype(np.float64))

    def exposure_of(rank_weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """(policy, query, item)"""
        flat = np.asarray(exposures(rank_weights), dtype=np.float64)
        return np.stack([padding.pad(dataset.in_query_order(policy_exposure)) for policy_exposure in flat])

    bias = aim.position_bias(labels.shape[-1])
    exposure = exposure_of(bias)
    utilities = np.zeros(exposure.shape[:2])
    for rank_weights, item_values in measure.additive_forms(labels, padding.mask):
        weighted = exposure if np.array_equal(rank_weights, bias) else exposure_of(rank_weights)
        utilities += (item_values * weighted).sum(-1)
    merit = dataset.in_row_order(padding.unpad(aim.merits(labels)))
    return [
        PolicyValue(
            utilities=policy_utilities,
            disparities=disparity,
            exposure=dataset.in_row_order(padding.unpad(policy_exposure)),
            merit=merit,
        )
        for policy_utilities, policy_exposure, disparity in zip(
            utilities, exposure, _disparities(exposure, labels, dataset, aim), strict=True
        )
    ]


def _additive(reward: Any) -> Reward:
    measure = reward_to_maximise(reward)
    if not measure.is_additive:
        raise RankPolicyError(
            "the exact utility of a policy needs a reward of rank weights times item values, such as 'ndcg@10', 'dcg' or 'p@5'; "
            f"got {measure.name!r}."
        )
    if measure.conventions.empty != 0:
        raise RankPolicyError(
            f"a query without relevant items must be worth 0 here; the reward has empty={measure.conventions.empty!r}. "
            "Drop such queries first: dataset.drop_queries_without_relevant_items()."
        )
    return measure


def _disparities(
    exposure: NDArray[np.float64], labels: NDArray[np.float64], dataset: RankingDataset, aim: FairnessAim
) -> list[Disparity]:
    """The disparity of each policy, from exposures (policy, query, item)."""
    groups = num_groups = None
    if aim.needs_groups:
        if dataset.groups_by_query is None:
            raise RankPolicyError(
                "fairness='group' needs the protected group of every item, and this dataset has none. "
                "Give it groups (from_arrays(..., protected=...), a group column), or measure fairness='individual'."
            )
        codes, names = encode_groups(dataset.groups_by_query)
        if len(names) < 2:
            raise RankPolicyError(f"fairness='group' needs at least two groups; all items belong to {names[0]!r}.")
        groups, num_groups = dataset.padding().pad(codes), len(names)
    mask = dataset.padding().mask
    if getattr(aim, "amortized", False):  # an average over the queries of one policy
        return [
            aim.disparity(policy_exposure, labels, mask, groups=groups, num_groups=num_groups)
            for policy_exposure in exposure
        ]
    times = len(exposure)
    disparities = aim.disparity(
        exposure.reshape(-1, exposure.shape[-1]),
        np.tile(labels, (times, 1)),
        np.tile(mask, (times, 1)),
        groups=None if groups is None else np.tile(groups, (times, 1)),
        num_groups=num_groups,
    )
    return disparities.of_policies(times)
