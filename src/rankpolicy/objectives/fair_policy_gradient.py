"""Expected reward minus disparity of exposure (Fair-PG-Rank), along exact or sampled gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.fairness import (
    Disparity,
    group_disparity,
    individual_disparity,
    merit_of,
    parity_offsets,
    position_bias,
    sampled_exposure,
)
from rankpolicy.gradients import additive_forms, exposure_gradient, reinforce
from rankpolicy.metrics import as_reward
from rankpolicy.objectives.value import ObjectiveValue, ascent_loss, choice_entropy
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.policies.race import COARSE, FINE, Quadrature
from rankpolicy.types import RankPolicyError, Reward, unknown_name

FAIRNESS = ("individual", "group")


@dataclass(frozen=True, slots=True, eq=False)
class FairValue:
    """Utility and disparity of a policy on some queries, and the gradient of utility - strength * disparity."""

    utility: Tensor  # (query,)
    disparity: Disparity
    gradient: Tensor  # (query, item) of each query, whatever its weight


@dataclass(frozen=True, slots=True, kw_only=True)
class FairPolicyGradient:
    """-(U - strength * D), mean over queries (Singh & Joachims 2019, eq. 5), minus ``entropy`` times the entropy of softmax(scores).

    ``fairness`` is the disparity of exposure to be lowered: between "individual" items, or between the mean exposures of the items of each
    "group", each relative to merit.

    With ``max_disparity`` δ the mean disparity is bounded instead, by an augmented Lagrangian: ``strength`` is the multiplier's estimate λ,
    and the price of disparity at D is max(0, λ + penalty * (D - δ)).

    With ``parity`` above 0 the policy is over scores + parity * offsets, where the whole offsets would give all groups of a query the same
    mean exposure (fairness/parity_offsets.py); the gradient goes through them.
    """

    reward: Reward
    fairness: str = "group"
    strength: float = 1.0
    max_disparity: float | None = None
    penalty: float = 0.0
    parity: float = 0.0
    merit: str = "identity"
    num_groups: int = 0
    entropy: float = 0.0
    estimator: str = "exact"
    num_samples: int = 10
    control: str = "leave_one_out"
    quadrature: Quadrature = COARSE
    report_name: str = "objective"

    def __post_init__(self) -> None:
        if self.fairness not in FAIRNESS:
            raise RankPolicyError(unknown_name("fairness", self.fairness, FAIRNESS))
        if self.estimator not in ("exact", "reinforce"):
            raise RankPolicyError(f"estimator must be 'exact' or 'reinforce' here; got {self.estimator!r}.")
        if self.strength < 0 or (self.max_disparity is not None and self.max_disparity < 0):
            raise RankPolicyError(
                f"strength and max_disparity must be 0 or more; got {self.strength}, {self.max_disparity}."
            )
        if self.max_disparity is not None and self.estimator == "reinforce":
            raise RankPolicyError("max_disparity here needs estimator='exact': samples do not know the disparity.")
        if not 0 <= self.parity <= 1 or (self.parity and self.fairness != "group"):
            raise RankPolicyError(
                "parity must be between 0 and 1, and 0 unless fairness='group'; "
                f"got {self.parity} with fairness={self.fairness!r}."
            )

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue:
        value = self.evaluate(scores.detach(), batch)
        loss = ascent_loss(scores, value.gradient, batch)
        report = self.worth(value, batch)
        if self.entropy:
            entropy = self.entropy * choice_entropy(scores, batch)
            loss, report = loss - entropy, report + float(entropy.detach())
        return ObjectiveValue(loss, report)

    def worth(self, value: FairValue, batch: Batch) -> float:
        """What is maximised: utility minus the price of disparity, mean over queries."""
        if self.max_disparity is None:
            return float(batch.mean_over_queries(value.utility - self.strength * value.disparity.values))
        multiplier = self._multiplier(value.disparity, batch)
        return float(batch.mean_over_queries(value.utility)) - (multiplier**2 - self.strength**2) / (2 * self.penalty)

    def _multiplier(self, disparity: Disparity, batch: Batch) -> float:
        assert self.max_disparity is not None
        return max(
            0.0, self.strength + self.penalty * (disparity.weighted_mean(batch.query_weights) - self.max_disparity)
        )

    def _price(self, disparity: Disparity, batch: Batch) -> float:
        """What a unit of one query's disparity costs."""
        weight_counted = disparity.weight_counted(batch.query_weights)
        if self.max_disparity is None or weight_counted == 0:
            return self.strength
        # The bound is on the mean over the queries that count; the objective is a mean over all.
        return self._multiplier(disparity, batch) * len(disparity.values) / weight_counted

    def report(self, scores: Tensor, batch: Batch) -> dict[str, Any]:
        """Utility and disparity at these scores, both exact; the strength; and how many queries were left out of the disparity and why."""
        value = replace(self, estimator="exact", quadrature=FINE).evaluate(scores, batch)
        return {
            "utility": float(batch.mean_over_queries(value.utility)),
            "disparity": value.disparity.weighted_mean(batch.query_weights),
            "strength": self.strength,
            "queries_left_out": dict(value.disparity.left_out),
        }

    def evaluate(self, scores: Tensor, batch: Batch) -> FairValue:
        """Utility, disparity and gradient at these scores, which are not differentiated."""
        estimate = self._sampled if self.estimator == "reinforce" else self._exact
        if not self.parity:
            return estimate(scores, batch)
        offsets = parity_offsets(scores.double(), batch.mask, _groups_of(batch), num_groups=self.num_groups or None)
        value = estimate(scores + self.parity * offsets.values.to(scores.dtype), batch)
        # Offsets answer to scores so that every group's exposure stays: what moves it is taken out of the gradient.
        pull = offsets.given.of_items(offsets.multipliers(value.gradient.double()))
        bias = position_bias(scores.shape[-1], dtype=torch.float64, device=scores.device)
        answer = self._exposure_gradient(scores.double() + offsets.values, batch.mask, pull, bias)[1]
        return replace(value, gradient=value.gradient - self.parity * answer.to(scores.dtype))

    def disparity(self, exposure: Tensor, batch: Batch) -> Disparity:
        merit = merit_of(batch.labels.to(exposure.dtype), self.merit)
        if self.fairness == "individual":
            return individual_disparity(exposure, merit, batch.mask)
        return group_disparity(exposure, merit, _groups_of(batch), batch.mask, num_groups=self.num_groups or None)

    def _exact(self, scores: Tensor, batch: Batch) -> FairValue:
        bias = position_bias(scores.shape[-1], dtype=torch.float64, device=scores.device)
        exposure = self._exposure_gradient(scores, batch.mask, torch.zeros_like(scores), bias)[0]
        disparity = self.disparity(exposure, batch)
        coefficients = -self._price(disparity, batch) * disparity.gradient.to(scores.dtype)
        utility, gradient = scores.new_zeros(len(scores)), torch.zeros_like(scores)
        for rank_weights, item_values in additive_forms(self.reward, batch.labels, batch.mask):
            if torch.allclose(rank_weights.double(), bias):
                # The reward looks at positions as exposure does: one pass serves both.
                coefficients = coefficients + item_values
                utility += (item_values * exposure).sum(-1)
            else:
                weighed, part = self._exposure_gradient(scores, batch.mask, item_values, rank_weights)
                utility += (item_values * weighed).sum(-1)
                gradient += part
        gradient += self._exposure_gradient(scores, batch.mask, coefficients, bias)[1]
        return FairValue(utility, disparity, gradient)

    def _exposure_gradient(
        self, scores: Tensor, mask: Tensor, coefficients: Tensor, rank_weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        return exposure_gradient(scores, mask, coefficients, rank_weights=rank_weights, quadrature=self.quadrature)

    def _sampled(self, scores: Tensor, batch: Batch) -> FairValue:
        """The paper's way. dD/dexposure comes from samples of its own: from the gradient's own samples it would be biased."""
        bias = position_bias(scores.shape[-1], dtype=scores.dtype, device=scores.device)
        rankings = PlackettLuce(scores, batch.mask).sample(self.num_samples)
        disparity = self.disparity(sampled_exposure(rankings, batch.mask, bias), batch)
        coefficients = disparity.gradient.to(scores.dtype)

        def penalised_reward(rankings: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
            placed = coefficients.expand(*rankings.shape[:-1], -1).gather(-1, rankings)
            return self.reward(rankings, labels, mask) - self.strength * (placed * bias[: rankings.shape[-1]]).sum(-1)

        estimate = reinforce(
            scores,
            batch.labels,
            batch.mask,
            reward=as_reward(penalised_reward),
            num_samples=self.num_samples,
            control=self.control,
        )
        penalty = self.strength * (coefficients * sampled_exposure(rankings, batch.mask, bias)).sum(-1)
        return FairValue(estimate.reward + penalty, disparity, estimate.gradient)


def _groups_of(batch: Batch) -> Tensor:
    if batch.groups is None:
        raise RankPolicyError(
            "fairness='group' needs the protected group of each item: pass protected= to fit or to the dataset."
        )
    return batch.groups
