"""The loss of BoostedPolicy: the exact gradient of expected reward minus disparity, and the Hessians it can be paired with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.padding import queries_by_length, rows_of_queries
from rankpolicy.fairness import as_aim
from rankpolicy.fairness.disparity import Disparity
from rankpolicy.gradients.exact import exposure_gradient
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.objectives import FairPolicyGradient
from rankpolicy.optional import require
from rankpolicy.policies.race import COARSE


def batch_of_all_queries(dataset: RankingDataset) -> Batch:
    """All queries as one batch, without features (LightGBM has them)."""
    return _tensors_of(dataset).batch(np.arange(dataset.num_queries))


def _tensors_of(dataset: RankingDataset) -> RaggedTensors:
    return RaggedTensors.of(dataset, np.empty((dataset.num_items, 0), np.float32), torch.device("cpu"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LengthBucket:
    """Queries of similar length, padded to the longest of them, and the terms of their reward."""

    batch: Batch
    rows: Tensor  # (items of the bucket,) their indices among all items
    reward_terms: tuple[tuple[Tensor, Tensor], ...]  # rank weights (position,) and item values (query, item)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyTreeObjective:
    """The loss -E[reward] + strength * disparity, summed over queries, as LightGBM takes it.

    Called with flat scores (items,) it returns the gradient and a positive Hessian diagonal, both (items,). Queries of similar length are
    computed together, so that one long list does not lengthen all others.
    """

    buckets: tuple[_LengthBucket, ...]
    num_queries: int
    hessian: str
    normalize: bool
    fair: FairPolicyGradient | None
    history: dict[str, list[float]]

    @classmethod
    def of(
        cls,
        train: RankingDataset,
        *,
        reward: Any,
        hessian: str,
        normalize: bool,
        fair: FairPolicyGradient | None = None,
    ) -> PolicyTreeObjective:
        """The objective of a training set, for a reward that is a sum of rank weights times item values."""
        measure = reward_to_maximise(reward)
        measured = ("reward",) if fair is None else ("reward", "disparity")
        tensors = _tensors_of(train)
        buckets = []
        for queries in queries_by_length(train.sizes):
            batch = tensors.batch(queries)
            terms = measure.additive_forms(batch.labels, batch.mask)
            rows = torch.from_numpy(rows_of_queries(train.query_offsets, queries))
            buckets.append(_LengthBucket(batch=batch, rows=rows, reward_terms=terms))
        return cls(
            buckets=tuple(buckets),
            num_queries=train.num_queries,
            hessian=hessian,
            normalize=normalize,
            fair=fair,
            history={name: [] for name in measured},
        )

    def _exposure_terms(
        self, scores: Tensor, bucket: _LengthBucket, disparities: list[Disparity]
    ) -> tuple[tuple[Tensor, Tensor], ...]:
        """The terms that are maximised: for each, rank weights (position,) and coefficients dU/dexposure (query, item) at these scores.

        The disparity, where there is one, is added to ``disparities``.
        """
        if self.fair is None:
            return bucket.reward_terms
        bias = as_aim(self.fair.fairness).position_bias(scores.shape[-1], dtype=scores.dtype)
        exposure, _ = exposure_gradient(
            scores, bucket.batch.mask, torch.zeros_like(scores), rank_weights=bias, quadrature=COARSE
        )
        disparity = self.fair.disparity(exposure, bucket.batch)
        disparities.append(disparity)
        return *bucket.reward_terms, (bias, -self.fair.strength * disparity.gradient)

    def __call__(self, flat_scores: NDArray[np.float64], /) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        all_scores = torch.from_numpy(flat_scores.astype(np.float32))
        gradient, hessian = (
            torch.zeros(len(all_scores), dtype=torch.float64),
            torch.zeros(len(all_scores), dtype=torch.float64),
        )
        reward = 0.0
        disparities: list[Disparity] = []
        for bucket in self.buckets:
            padding = bucket.batch.padding
            bucket_gradient, bucket_hessian, earned = self._of_bucket(
                padding.pad(all_scores[bucket.rows]), bucket, disparities
            )
            gradient[bucket.rows] = padding.unpad(bucket_gradient).double()
            hessian[bucket.rows] = padding.unpad(bucket_hessian).double()
            reward += earned
        self.history["reward"].append(reward / self.num_queries)
        if disparities:
            num_counted = sum(disparity.num_counted for disparity in disparities)
            total = sum(float(disparity.values.sum()) for disparity in disparities)
            self.history["disparity"].append(total / num_counted if num_counted else math.nan)
        return -gradient.numpy(), hessian.numpy()

    def _of_bucket(
        self, scores: Tensor, bucket: _LengthBucket, disparities: list[Disparity]
    ) -> tuple[Tensor, Tensor, float]:
        """Gradient and Hessian (query, item) of what is maximised, and the summed reward of the queries."""
        gradient, hessian = torch.zeros_like(scores), torch.zeros_like(scores)
        weights = bucket.batch.query_weights
        values: list[float] = []
        for rank_weights, coefficients in self._exposure_terms(scores, bucket, disparities):
            # A query whose coefficients are all 0 (no relevant item, or already fair) has no gradient.
            mask = bucket.batch.mask & coefficients.any(-1, keepdim=True)
            exposure, slope = exposure_gradient(
                scores, mask, coefficients, rank_weights=rank_weights, quadrature=COARSE
            )
            gradient += slope
            hessian += HESSIANS[self.hessian](scores, mask, slope, coefficients=coefficients, rank_weights=rank_weights)
            earned = (coefficients * exposure).sum(-1)
            values.append(float((earned if weights is None else weights * earned).sum()))
        if self.normalize:
            length = gradient.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
            gradient /= length
            if self.hessian != "constant":
                hessian /= length
        if weights is not None:
            gradient *= weights[:, None]
            hessian *= weights[:, None]
        return gradient, hessian, sum(values[: len(bucket.reward_terms)])


def magnitude(scores: Tensor, mask: Tensor, gradient: Tensor, *, coefficients: Tensor, rank_weights: Tensor) -> Tensor:
    """abs(dU/ds_i), added up over the terms, so that a leaf comes to rest where opposed terms balance."""
    return gradient.abs()


def diagonal(scores: Tensor, mask: Tensor, gradient: Tensor, *, coefficients: Tensor, rank_weights: Tensor) -> Tensor:
    """abs(dexposure_i/ds_i) times the query's highest abs(coefficient): the diagonal of the Laplacian W of gradients/exact.py."""
    require("numba", "hessian='diagonal'")
    from rankpolicy.kernels.plackett_luce.race import race

    *_, curvature = race(scores.numpy(), mask.numpy(), rank_weights.numpy(), coefficients.numpy(), quadrature=COARSE)
    return torch.from_numpy(curvature).abs() * coefficients.abs().amax(-1, keepdim=True)


def constant(scores: Tensor, mask: Tensor, gradient: Tensor, *, coefficients: Tensor, rank_weights: Tensor) -> Tensor:
    """1 for every item: plain gradient boosting."""
    return torch.ones_like(scores)


HESSIANS: dict[str, Callable[..., Tensor]] = {"magnitude": magnitude, "diagonal": diagonal, "constant": constant}
