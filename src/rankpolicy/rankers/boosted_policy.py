"""Boosted trees whose scores are a Plackett-Luce policy, grown along the exact gradient of its expected reward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.padding import Padding
from rankpolicy.gradients.exact import additive_forms, exposure_gradient
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.optional import require
from rankpolicy.policies.race import COARSE
from rankpolicy.rankers.trees import TreeRanker
from rankpolicy.types import RankPolicyError


@final
@dataclass(kw_only=True, eq=False, repr=False)
class BoostedPolicy(TreeRanker):
    """Maximise the expected ``reward`` of rankings drawn from the policy, by trees.

    ``reward`` is one that is rank weights times item values: "ndcg@10", "ndcg" (the whole list), "dcg@5 + 0.1*recall@20". Each tree takes
    a Newton step along dU/dscores, computed without sampling; LightGBM divides the sum of gradients in a leaf by the sum of ``hessian``:

    - "magnitude": abs(dU/ds_i). A leaf moves by the learning rate times the balance of its pull, from -1 (all items pull down) to 1.
      Of two items with P(first) = p it bounds the curvature: U'' = (1 - 2p) U'.
    - "diagonal": dexposure_i/ds_i times the highest item value of the query. A leaf moves by the mean advantage of its items.
    - "constant": 1 for each term of the reward, plain gradient boosting.

    ``normalize`` divides gradient and Hessian of each query by the length of its gradient (a constant Hessian stays 1).
    """

    name: ClassVar[str] = "boosted-policy"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"num_leaves": leaves, "min_items_in_leaf": items} for leaves in (15, 7, 31) for items in (50, 20, 100)
    )

    reward: Any = "ndcg@10"
    hessian: str = "magnitude"
    normalize: bool = False
    learning_rate: float = 0.3

    def _objective(self, train: RankingDataset) -> PolicyTreeObjective:
        return PolicyTreeObjective.of(train, reward=self.reward, hessian=self.hessian, normalize=self.normalize)

    def _parameters(self) -> dict[str, Any]:
        # Gradients are small where a policy is nearly sure; LightGBM's floor of 1e-3 would end the growth there.
        return super()._parameters() | {"min_sum_hessian_in_leaf": 1e-9}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyTreeObjective:
    """The loss -E[reward], summed over queries: its gradient and a positive Hessian diagonal in flat scores."""

    padding: Padding
    reward_terms: tuple[tuple[Tensor, Tensor], ...]  # rank weights (position,) and item values (query, item)
    hessian: str
    normalize: bool
    history: dict[str, list[float]] = field(default_factory=lambda: {"reward": []})

    @classmethod
    def of(cls, train: RankingDataset, *, reward: Any, hessian: str, normalize: bool) -> PolicyTreeObjective:
        if hessian not in HESSIANS:
            raise RankPolicyError(f"Unknown hessian {hessian!r}. Known: {', '.join(HESSIANS)}.")
        labels, mask = train.padded_labels()
        measure = reward_to_maximise(reward)
        if not measure.is_additive:
            raise RankPolicyError(
                f"BoostedPolicy needs a reward of rank weights times item values, such as 'ndcg@10'; got {measure.name!r}. "
                "PGRank learns any reward: PGRank(reward=..., estimator='reinforce')."
            )
        return cls(
            padding=train.padding(),
            reward_terms=additive_forms(measure, labels, mask),
            hessian=hessian,
            normalize=normalize,
        )

    def exposure_terms(self, scores: Tensor) -> tuple[tuple[Tensor, Tensor], ...]:
        """All that is maximised, as rank weights (position,) and coefficients dU/dexposure (query, item) at these scores, a pair a term."""
        return self.reward_terms

    def __call__(self, flat_scores: NDArray[np.float64], /) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        scores = self.padding.pad(torch.from_numpy(flat_scores.astype(np.float32)))
        gradient, hessian, utility = torch.zeros_like(scores), torch.zeros_like(scores), scores.new_zeros(len(scores))
        for rank_weights, coefficients in self.exposure_terms(scores):
            # A query whose coefficients are all 0 has no relevant item, and no gradient.
            mask = self.padding.mask & coefficients.any(-1, keepdim=True)
            exposure, part = exposure_gradient(scores, mask, coefficients, rank_weights=rank_weights, quadrature=COARSE)
            gradient += part
            hessian += HESSIANS[self.hessian](scores, mask, part, coefficients=coefficients, rank_weights=rank_weights)
            utility += (coefficients * exposure).sum(-1)
        self.history["reward"].append(float(utility.mean()))
        if self.normalize:
            length = gradient.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
            gradient /= length
            if self.hessian != "constant":
                hessian /= length
        return -self.padding.unpad(gradient).double().numpy(), self.padding.unpad(hessian).double().numpy()


def magnitude(scores: Tensor, mask: Tensor, gradient: Tensor, *, coefficients: Tensor, rank_weights: Tensor) -> Tensor:
    """abs(dU/ds_i), term by term: where terms pull against each other a leaf comes to rest between them."""
    return gradient.abs()


def diagonal(scores: Tensor, mask: Tensor, gradient: Tensor, *, coefficients: Tensor, rank_weights: Tensor) -> Tensor:
    """abs(dexposure_i/ds_i) * the query's highest abs(coefficient): the diagonal of the Laplacian W of gradients/exact.py."""
    require("numba", "hessian='diagonal'")
    from rankpolicy.kernels.race import race

    *_, curvature = race(scores.numpy(), mask.numpy(), rank_weights.numpy(), coefficients.numpy(), quadrature=COARSE)
    return torch.from_numpy(curvature).abs() * coefficients.abs().amax(-1, keepdim=True)


def constant(scores: Tensor, mask: Tensor, gradient: Tensor, *, coefficients: Tensor, rank_weights: Tensor) -> Tensor:
    """1 for every item."""
    return torch.ones_like(scores)


HESSIANS: dict[str, Callable[..., Tensor]] = {"magnitude": magnitude, "diagonal": diagonal, "constant": constant}
