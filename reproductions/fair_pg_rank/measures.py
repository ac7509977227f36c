"""What is measured of a policy, from the exact exposure of every item: our utility and disparities, and the authors' own measure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data import RankingDataset
from rankpolicy.experiments.tradeoff_curves import UtilityDisparity
from rankpolicy.fairness import encode_groups, exposure_difference, group_disparity, position_bias
from rankpolicy.fairness.exposure_parity import treatment_difference
from rankpolicy.types import Reward

HIGHEST_LABEL_OF_AUTHORS = 4.0


class Measured(NamedTuple):
    """Means over the queries of a dataset.

    Parameters
    ----------
    utility
        Expected NDCG.
    disparity
        The paper's D_group, one-sided: only the group of higher merit can have too much exposure.
    two_sided
        abs(E1 / M1 - E0 / M0).
    exposure_difference
        abs(E1 - E0), whatever the merits are.
    authors_utility, authors_disparity
        As the authors' code measures; see ``authors_value``.
    """

    utility: float
    disparity: float
    two_sided: float
    exposure_difference: float
    authors_utility: float
    authors_disparity: float

    @classmethod
    def mean(cls, values: list[Measured]) -> Measured:
        """Means over seeds."""
        return cls(*np.mean(values, axis=0).tolist())


def measured(exposure: NDArray[np.floating], dataset: RankingDataset, reward: Reward) -> Measured:
    """What a policy is worth on labelled queries with two groups.

    Parameters
    ----------
    exposure
        Expected exposure of each item (items,), with the weights 1 / log2(1 + rank).
    dataset
        Labels and groups; a query in which a group is absent or has no merit has no disparity and is left out of its mean.
    reward
        NDCG, by some convention.
    """
    padding, codes = dataset.padding().to("cpu"), encode_groups(_groups(dataset)).codes
    labels = padding.pad(torch.from_numpy(dataset.labels_by_query.astype(np.float64)))
    groups, mask, shown = padding.pad(codes), padding.mask, _padded(exposure, dataset)
    ((rank_weights, item_values),) = reward.additive_forms(labels, mask)
    assert torch.equal(rank_weights.double(), position_bias(len(rank_weights), dtype=torch.float64))
    authors = authors_value(exposure, dataset)
    return Measured(
        utility=float((item_values * shown).sum(-1).mean()),
        disparity=group_disparity(shown, labels, groups, mask, num_groups=2).mean,
        two_sided=float(treatment_difference(shown, labels, groups, mask).nanmean()),
        exposure_difference=float(exposure_difference(shown, groups, mask).nanmean()),
        authors_utility=authors.utility,
        authors_disparity=authors.disparity,
    )


def authors_value(exposure: NDArray[np.floating], dataset: RankingDataset) -> UtilityDisparity:
    """Utility and disparity as the code of the paper's authors measures those of a policy.

    Labels above 4 count as 4, in gain 2^label - 1 and in merit; a query without relevant items has NDCG 1; D_group is one-sided also at
    equal merits, where group 0 counts as the group of higher merit; a query in which a group is absent or has no merit has D_group 0 and
    stays in the mean. (Their linear program they measure by another NDCG, with the label as gain.)

    Parameters
    ----------
    exposure
        Expected exposure of each item (items,), with the weights 1 / log2(1 + rank); the authors sample it.
    dataset
        Labels, and groups of two values, of which the lower is group 0.
    """
    padding = dataset.padding().to("cpu")
    clipped = np.minimum(dataset.labels_by_query.astype(np.float64), HIGHEST_LABEL_OF_AUTHORS)
    labels, shown = padding.pad(torch.from_numpy(clipped)), _padded(exposure, dataset)
    gains = torch.exp2(labels) - 1
    ideal = gains.sort(descending=True).values @ position_bias(labels.shape[1], dtype=torch.float64)
    ndcg = torch.where(ideal > 0, (gains * shown).sum(-1) / ideal, 1.0)

    codes = padding.pad(encode_groups(_groups(dataset)).codes)
    in_0, in_1 = padding.mask & (codes == 0), padding.mask & (codes == 1)
    E_0, E_1 = _mean_over(shown, in_0), _mean_over(shown, in_1)
    M_0, M_1 = _mean_over(labels, in_0), _mean_over(labels, in_1)
    difference = torch.where(M_0 >= M_1, 1.0, -1.0) * (E_0 / M_0 - E_1 / M_1)
    has_disparity = (M_0 > 0) & (M_1 > 0)  # the mean over an absent group is NaN
    disparity = torch.where(has_disparity, difference.clamp(min=0), 0.0)
    return UtilityDisparity(utility=float(ndcg.mean()), disparity=float(disparity.mean()))


def _mean_over(values: Tensor, members: Tensor) -> Tensor:
    return (values * members).sum(-1) / members.sum(-1)


def _padded(exposure: NDArray[np.floating], dataset: RankingDataset) -> Tensor:
    flat = dataset.in_query_order(np.asarray(exposure, dtype=np.float64))
    return dataset.padding().pad(torch.from_numpy(flat))


def _groups(dataset: RankingDataset) -> NDArray[np.generic]:
    assert dataset.groups_by_query is not None
    return dataset.groups_by_query
