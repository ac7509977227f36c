"""Weights of queries as users give them: one per query, or one per row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import as_float64
from rankpolicy.types import RankPolicyError


def with_sample_weight(dataset: RankingDataset, sample_weight: ArrayLike) -> RankingDataset:
    """The dataset with these query weights.

    Parameters
    ----------
    dataset
        The dataset; it must not have weights already.
    sample_weight
        One weight per query, in the order of the dataset, or one per row, equal within each query.
    """
    if dataset.query_weights is not None:
        raise RankPolicyError(
            "sample_weight must not be given for data that has query weights already, such as weighted clicks. Leave it out."
        )
    weights = as_float64("sample_weight", sample_weight)
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
        raise RankPolicyError(
            f"sample_weight must be finite, 0 or more and not all 0 (all zero weights leave nothing to learn from); got {weights!r:.80}."
        )
    if weights.shape == (dataset.num_items,):
        weights = _of_queries(dataset.in_query_order(weights), dataset)
    elif weights.shape != (dataset.num_queries,):
        raise RankPolicyError(
            f"sample_weight must have one value per query, shape ({dataset.num_queries},), or one per row, shape "
            f"({dataset.num_items},); got {weights.shape}."
        )
    return replace(dataset, query_weights=weights)


def _of_queries(weights: NDArray[np.float64], dataset: RankingDataset) -> NDArray[Any]:
    first = weights[dataset.query_offsets[:-1]]
    differs = weights != np.repeat(first, dataset.sizes)
    if differs.any():
        item = int(np.flatnonzero(differs)[0])
        query = int(dataset.query_numbers[item])
        raise RankPolicyError(
            f"sample_weight must be equal for all rows of a query, since whole lists are learned from; query {dataset.query_ids[query]} "
            f"has {first[query]:g} and {weights[item]:g}. Give one weight per query."
        )
    return np.asarray(first)
