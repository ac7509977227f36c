"""The loss of BoostedPolicy: the exact gradient of expected reward minus disparity, and the Hessians it can be paired with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.fairness import position_bias
from rankpolicy.gradients.exact import exposure_gradient
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.objectives import FairPolicyGradient
from rankpolicy.optional import require
from rankpolicy.policies.race import COARSE


def batch_of_all_queries(dataset: RankingDataset) -> Batch:
    """All queries as one batch, without features (LightGBM has them)."""
    no_features = np.empty((dataset.num_items, 0), np.float32)
    return RaggedTensors.of(dataset, no_features, torch.device("cpu")).batch(np.arange(dataset.num_queries))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyTreeObjective:
    """The loss -E[reward] + strength * disparity, summed over queries, as LightGBM takes it.

    Called with flat scores (items,) it returns the gradient and a positive Hessian diagonal, both (items,).
    """

    batch: Batch
    reward_terms: tuple[tuple[Tensor, Tensor], ...]  # rank weights (position,) and item values (query, item)
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
        batch = batch_of_all_queries(train)
        measure = reward_to_maximise(reward)
        measured = ("reward",) if fair is None else ("reward", "disparity")
        return cls(
            batch=batch,
            reward_terms=measure.additive_forms(batch.labels, batch.mask),
            hessian=hessian,
            normalize=normalize,
            fair=fair,
            history={name: [] for name in measured},
        )

    def exposure_terms(self, scores: Tensor) -> tuple[tuple[Tensor, Tensor], ...]:
        """The terms that are maximised: for each, rank weights (position,) and coefficients dU/dexposure (query, item) at these scores."""
        if self.fair is None:
            return self.reward_terms
        bias = position_bias(scores.shape[-1], dtype=scores.dtype)
        exposure, _ = exposure_gradient(
            scores, self.batch.mask, torch.zeros_like(scores), rank_weights=bias, quadrature=COARSE
        )
        disparity = self.fair.disparity(exposure, self.batch)
        self.history["disparity"].append(disparity.mean)
        return *self.reward_terms, (bias, -self.fair.strength * disparity.gradient)

    def __call__(self, flat_scores: NDArray[np.float64], /) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        padding = self.batch.padding
        scores = padding.pad(torch.from_numpy(flat_scores.astype(np.float32)))
        gradient, hessian = torch.zeros_like(scores), torch.zeros_like(scores)
        values: list[float] = []
        for rank_weights, coefficients in self.exposure_terms(scores):
            # A query whose coefficients are all 0 (no relevant item, or already fair) has no gradient.
            mask = padding.mask & coefficients.any(-1, keepdim=True)
            exposure, part = exposure_gradient(scores, mask, coefficients, rank_weights=rank_weights, quadrature=COARSE)
            gradient += part
            hessian += HESSIANS[self.hessian](scores, mask, part, coefficients=coefficients, rank_weights=rank_weights)
            values.append(float(self.batch.mean_over_queries((coefficients * exposure).sum(-1))))
        self.history["reward"].append(sum(values[: len(self.reward_terms)]))
        if self.normalize:
            length = gradient.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
            gradient /= length
            if self.hessian != "constant":
                hessian /= length
        if self.batch.query_weights is not None:
            gradient *= self.batch.query_weights[:, None]
            hessian *= self.batch.query_weights[:, None]
        return -padding.unpad(gradient).double().numpy(), padding.unpad(hessian).double().numpy()


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
