"""Boosted trees whose scores are a Plackett-Luce policy, grown along the exact gradient of its expected reward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.fairness import position_bias
from rankpolicy.gradients.exact import additive_forms, exposure_gradient
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.objectives import FairPolicyGradient
from rankpolicy.optional import require
from rankpolicy.policies.race import COARSE
from rankpolicy.rankers.base import FitOptions
from rankpolicy.rankers.inputs import num_groups_of
from rankpolicy.rankers.trees.boosting import Measure, TreeRanker
from rankpolicy.types import RankPolicyError


@final
@dataclass(kw_only=True, eq=False, repr=False)
class BoostedPolicy(TreeRanker):
    """Maximise the expected ``reward`` of rankings drawn from the policy, minus ``strength`` times their disparity of exposure, by trees.

    ``reward`` is one that is rank weights times item values: "ndcg@10", "ndcg" (the whole list), "dcg@5 + 0.1*recall@20". Each tree takes
    a Newton step along dU/dscores, computed without sampling; LightGBM divides the sum of gradients in a leaf by the sum of ``hessian``:

    - "magnitude": abs(dU/ds_i). A leaf moves by the learning rate times the balance of its pull, from -1 (all items pull down) to 1.
      Of two items with P(first) = p it bounds the curvature: U'' = (1 - 2p) U'.
    - "diagonal": dexposure_i/ds_i times the highest item value of the query. A leaf moves by the mean advantage of its items.
    - "constant": 1 for each term of the reward, plain gradient boosting.

    ``normalize`` divides gradient and Hessian of each query by the length of its gradient (a constant Hessian stays 1).

    ``strength`` > 0 adds a term of fairness: ``fairness`` between the "group"s of items or between "individual" items, each relative to
    ``merit`` (Singh & Joachims 2019). Groups are needed for training (and validation) only. Validation is then by the same
    objective, reward minus strength * disparity, and ``valid_metric`` is not used. After fit ``report_`` holds utility and disparity (both
    exact, on the training data), the strength, and how many queries were left out of the disparity and why; without a fairness term it
    is None.
    """

    name: ClassVar[str] = "boosted-policy"
    ranks_by_sorting: ClassVar[bool] = False
    fitted_attributes: ClassVar[tuple[str, ...]] = (*TreeRanker.fitted_attributes, "report_")

    reward: Any = "ndcg@10"
    hessian: str = "magnitude"
    normalize: bool = False
    fairness: str = "group"
    strength: float = 0.0
    merit: str = "identity"
    learning_rate: float = 0.3

    report_: dict[str, Any] | None = field(default=None, init=False)

    def _objective(self, train: RankingDataset) -> PolicyTreeObjective:
        return PolicyTreeObjective.of(
            train, reward=self.reward, hessian=self.hessian, normalize=self.normalize, fair=self._fair_objective(train)
        )

    def _fair_objective(self, dataset: RankingDataset) -> FairPolicyGradient | None:
        fair = FairPolicyGradient(
            reward=reward_to_maximise(self.reward), fairness=self.fairness, strength=self.strength, merit=self.merit
        )
        if self.strength == 0:
            return None
        return replace(fair, num_groups=num_groups_of(dataset, fairness=self.fairness))

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        super()._fit(train, valid, options)
        fair = self._fair_objective(train)
        if fair is None:
            self.report_ = None
        else:
            batch = _whole_batch(train)
            self.report_ = fair.report(batch.padding.pad(torch.from_numpy(self._scores(train))), batch)

    def _validation(self, valid: RankingDataset) -> tuple[str, Measure]:
        fair = self._fair_objective(valid)
        if fair is None:
            return super()._validation(valid)
        batch = _whole_batch(valid)
        return "objective", lambda scores: fair.worth(
            fair.evaluate(batch.padding.pad(torch.from_numpy(scores)), batch), batch
        )

    def _parameters(self) -> dict[str, Any]:
        # Gradients are small where a policy is nearly sure; LightGBM's floor of 1e-3 would end the growth there.
        return super()._parameters() | {"min_sum_hessian_in_leaf": 1e-9}


def _whole_batch(dataset: RankingDataset) -> Batch:
    """All queries; without features, which LightGBM has."""
    none = np.empty((dataset.num_items, 0), np.float32)
    return RaggedTensors.of(dataset, none, torch.device("cpu")).batch(np.arange(dataset.num_queries))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyTreeObjective:
    """The loss -E[reward] + strength * disparity, summed over queries: its gradient and a positive Hessian diagonal in flat scores."""

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
        if hessian not in HESSIANS:
            raise RankPolicyError(f"Unknown hessian {hessian!r}. Known: {', '.join(HESSIANS)}.")
        batch = _whole_batch(train)
        measure = reward_to_maximise(reward)
        if not measure.is_additive:
            raise RankPolicyError(
                f"BoostedPolicy needs a reward of rank weights times item values, such as 'ndcg@10'; got {measure.name!r}. "
                "PGRank learns any reward: PGRank(reward=..., estimator='reinforce')."
            )
        measured = ("reward",) if fair is None else ("reward", "disparity")
        return cls(
            batch=batch,
            reward_terms=additive_forms(measure, batch.labels, batch.mask),
            hessian=hessian,
            normalize=normalize,
            fair=fair,
            history={name: [] for name in measured},
        )

    def exposure_terms(self, scores: Tensor) -> tuple[tuple[Tensor, Tensor], ...]:
        """All that is maximised, as rank weights (position,) and coefficients dU/dexposure (query, item) at these scores, a pair a term."""
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
            # A query whose coefficients are all 0 has no relevant item, or is fair: no gradient.
            mask = padding.mask & coefficients.any(-1, keepdim=True)
            exposure, part = exposure_gradient(scores, mask, coefficients, rank_weights=rank_weights, quadrature=COARSE)
            gradient += part
            hessian += HESSIANS[self.hessian](scores, mask, part, coefficients=coefficients, rank_weights=rank_weights)
            values.append(float((coefficients * exposure).sum(-1).mean()))
        self.history["reward"].append(sum(values[: len(self.reward_terms)]))
        if self.normalize:
            length = gradient.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
            gradient /= length
            if self.hessian != "constant":
                hessian /= length
        return -padding.unpad(gradient).double().numpy(), padding.unpad(hessian).double().numpy()


def magnitude(scores: Tensor, mask: Tensor, gradient: Tensor, *, coefficients: Tensor, rank_weights: Tensor) -> Tensor:
    """abs(dU/ds_i), term by term: where terms pull against each other a leaf comes to rest between them."""
    return gradient.abs()


def diagonal(scores: Tensor, mask: Tensor, gradient: Tensor, *, coefficients: Tensor, rank_weights: Tensor) -> Tensor:
    """abs(dexposure_i/ds_i) * the query's highest abs(coefficient): the diagonal of the Laplacian W of gradients/exact.py."""
    require("numba", "hessian='diagonal'")
    from rankpolicy.kernels.plackett_luce.race import race

    *_, curvature = race(scores.numpy(), mask.numpy(), rank_weights.numpy(), coefficients.numpy(), quadrature=COARSE)
    return torch.from_numpy(curvature).abs() * coefficients.abs().amax(-1, keepdim=True)


def constant(scores: Tensor, mask: Tensor, gradient: Tensor, *, coefficients: Tensor, rank_weights: Tensor) -> Tensor:
    """1 for every item."""
    return torch.ones_like(scores)


HESSIANS: dict[str, Callable[..., Tensor]] = {"magnitude": magnitude, "diagonal": diagonal, "constant": constant}
