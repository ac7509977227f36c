"""The loss of BoostedPolicy: the exact gradient of expected reward minus disparity, and the Hessians it can be paired with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import to_numpy
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

Floats = NDArray[Any]


def batch_of_all_queries(dataset: RankingDataset) -> Batch:
    """All queries as one batch, without features (LightGBM has them)."""
    return _ragged(dataset).batch(np.arange(dataset.num_queries))


def _ragged(dataset: RankingDataset) -> RaggedTensors:
    return RaggedTensors.of(dataset, np.empty((dataset.num_items, 0), np.float32))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LengthBucket:
    """Queries of similar length, padded to the longest of them, and the terms of their reward."""

    batch: Batch
    rows: NDArray[np.int64]  # (items of the bucket,) their indices among all items
    reward_terms: tuple[tuple[Floats, Floats], ...]  # rank weights (position,) and item values (query, item)


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
        ragged = _ragged(train)
        buckets = []
        for queries in queries_by_length(train.sizes):
            batch = ragged.batch(queries)
            terms = measure.additive_forms(batch.labels, batch.mask)
            rows = rows_of_queries(train.query_offsets, queries)
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
        self, scores: Floats, bucket: _LengthBucket, disparities: list[Disparity]
    ) -> tuple[tuple[Floats, Floats], ...]:
        """The terms that are maximised: for each, rank weights (position,) and coefficients dU/dexposure (query, item) at these scores.

        The disparity, where there is one, is added to ``disparities``.
        """
        if self.fair is None:
            return bucket.reward_terms
        bias = to_numpy(as_aim(self.fair.fairness).position_bias(scores.shape[-1])).astype(scores.dtype)
        exposure, _ = exposure_gradient(
            scores, bucket.batch.mask, np.zeros_like(scores), rank_weights=bias, quadrature=COARSE
        )
        disparity = self.fair.disparity(exposure, bucket.batch)
        disparities.append(disparity)
        return *bucket.reward_terms, (bias, -self.fair.strength * disparity.gradient)

    def __call__(self, flat_scores: NDArray[np.float64], /) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        all_scores = flat_scores.astype(np.float32)
        gradient, hessian = np.zeros(len(all_scores)), np.zeros(len(all_scores))
        reward = 0.0
        disparities: list[Disparity] = []
        for bucket in self.buckets:
            padding = bucket.batch.padding
            bucket_gradient, bucket_hessian, earned = self._of_bucket(
                padding.pad(all_scores[bucket.rows]), bucket, disparities
            )
            gradient[bucket.rows] = padding.unpad(bucket_gradient)
            hessian[bucket.rows] = padding.unpad(bucket_hessian)
            reward += earned
        self.history["reward"].append(reward / self.num_queries)
        if disparities:
            num_counted = sum(disparity.num_counted for disparity in disparities)
            total = sum(float(disparity.values.sum()) for disparity in disparities)
            self.history["disparity"].append(total / num_counted if num_counted else math.nan)
        return -gradient, hessian

    def _of_bucket(
        self, scores: Floats, bucket: _LengthBucket, disparities: list[Disparity]
    ) -> tuple[Floats, Floats, float]:
        """Gradient and Hessian (query, item) of what is maximised, and the summed reward of the queries."""
        gradient, hessian = np.zeros_like(scores), np.zeros_like(scores)
        weights = bucket.batch.query_weights
        values: list[float] = []
        for rank_weights, coefficients in self._exposure_terms(scores, bucket, disparities):
            # A query whose coefficients are all 0 (no relevant item, or already fair) has no gradient.
            mask = bucket.batch.mask & coefficients.any(-1, keepdims=True)
            exposure, slope = exposure_gradient(
                scores, mask, coefficients, rank_weights=rank_weights, quadrature=COARSE
            )
            gradient += slope
            hessian += HESSIANS[self.hessian](scores, mask, slope, coefficients=coefficients, rank_weights=rank_weights)
            earned = (coefficients * exposure).sum(-1)
            values.append(float((earned if weights is None else weights * earned).sum()))
        if self.normalize:
            length = np.maximum(np.linalg.norm(gradient, axis=-1, keepdims=True), np.finfo(scores.dtype).tiny)
            gradient /= length
            if self.hessian != "constant":
                hessian /= length
        if weights is not None:
            gradient *= weights[:, None]
            hessian *= weights[:, None]
        return gradient, hessian, sum(values[: len(bucket.reward_terms)])


def magnitude(scores: Floats, mask: Floats, gradient: Floats, *, coefficients: Floats, rank_weights: Floats) -> Floats:
    """abs(dU/ds_i), added up over the terms, so that a leaf comes to rest where opposed terms balance."""
    return np.abs(gradient)


def diagonal(scores: Floats, mask: Floats, gradient: Floats, *, coefficients: Floats, rank_weights: Floats) -> Floats:
    """abs(dexposure_i/ds_i) times the query's highest abs(coefficient): the diagonal of the Laplacian W of gradients/exact.py."""
    require("numba", "hessian='diagonal'")
    from rankpolicy.kernels.plackett_luce.race import race

    *_, curvature = race(scores, mask, rank_weights, coefficients, quadrature=COARSE)
    return np.abs(curvature) * np.abs(coefficients).max(-1, keepdims=True)


def constant(scores: Floats, mask: Floats, gradient: Floats, *, coefficients: Floats, rank_weights: Floats) -> Floats:
    """1 for every item: plain gradient boosting."""
    return np.ones_like(scores)


HESSIANS: dict[str, Callable[..., Floats]] = {"magnitude": magnitude, "diagonal": diagonal, "constant": constant}
