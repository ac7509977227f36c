"""Fair-PG-Rank: a Plackett-Luce policy that trades expected reward against disparity of exposure."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import nn

from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.scaling import FeatureScaling, fit_scaling
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.models import Average
from rankpolicy.objectives import FAIRNESS, FairPolicyGradient
from rankpolicy.policies.race import FINE
from rankpolicy.rankers.base import Course
from rankpolicy.rankers.network import NetworkRanker
from rankpolicy.training import Validation
from rankpolicy.training.full_batch import fit_full_batch
from rankpolicy.types import RankPolicyError, unknown_name

_MOST_ROUNDS = 20
_TOLERANCE = 0.05  # how far from max_disparity the disparity of the training data may end, as a share of it


@final
@dataclass(kw_only=True, eq=False, repr=False)
class FairPGRank(NetworkRanker):
    """Maximise utility - strength * disparity (Singh & Joachims 2019), by exact gradients.

    ``fairness`` is "group" (needs the protected group of every item) or "individual". Instead of ``strength``, ``max_disparity`` may
    bound the disparity of the training data. Linear models are trained by L-BFGS on all queries at once: the same data, the same weights.

    After fit, ``report_`` holds utility and disparity (both exact, on the training data), the strength used, and how many queries were left
    out of the disparity and why.
    """

    name: ClassVar[str] = "fair-pg-rank"
    fitted_attributes: ClassVar[tuple[str, ...]] = (*NetworkRanker.fitted_attributes, "report_")

    reward: Any = "ndcg"
    fairness: str = "group"
    strength: float = 1.0
    max_disparity: float | None = None
    merit: str = "identity"
    entropy: float = 0.0
    estimator: str = "exact"
    num_samples: int = 10
    control: str = "leave_one_out"
    model: str = "linear"
    scaling: str = "standardize"
    valid_metric: Any = "objective"

    def _objective(self) -> FairPolicyGradient:
        if self.fairness not in FAIRNESS:
            raise RankPolicyError(unknown_name("fairness", self.fairness, FAIRNESS))
        if self.estimator not in ("exact", "reinforce"):
            raise RankPolicyError(f"estimator must be 'exact' or 'reinforce' here; got {self.estimator!r}.")
        if self.strength < 0 or (self.max_disparity is not None and self.max_disparity < 0):
            raise RankPolicyError(
                f"strength and max_disparity must be 0 or more; got {self.strength}, {self.max_disparity}."
            )
        return FairPolicyGradient(
            reward=reward_to_maximise(self.reward),
            fairness=self.fairness,
            strength=self._used_strength,
            merit=self.merit,
            num_groups=self._num_groups,
            entropy=self.entropy,
            estimator=self.estimator,
            num_samples=self.num_samples,
            control=self.control,
        )

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, course: Course) -> None:
        self._used_strength = self.strength if self.max_disparity is None else 0.0
        self._num_groups = 0 if train.groups is None else len(np.unique(train.groups))
        if self.fairness == "group" and self._num_groups < 2:
            raise RankPolicyError(
                "fairness='group' needs at least two protected groups: pass groups= (a value per row) to fit, or give the dataset a "
                f"group column; got {self._num_groups or 'none'}."
            )
        scaling = fit_scaling(self.scaling, train)
        everything = _whole_batch(train, scaling)
        if self.model == "linear" and self.estimator == "exact":
            if course.checkpoint is not None:
                raise RankPolicyError(
                    "a linear FairPGRank keeps no checkpoints: it is trained in one go. Leave checkpoint out."
                )
            self._fit_linear(everything, scaling)
            self._record_validation(valid, scaling)
        elif self.max_disparity is not None:
            raise RankPolicyError(
                "max_disparity needs model='linear' and estimator='exact', whose training has no noise to chase the bound through; "
                f"got model={self.model!r}, estimator={self.estimator!r}. Set strength instead."
            )
        else:
            super()._fit(train, valid, course)
        self._report_on(everything)

    def _fit_linear(self, batch: Batch, scaling: FeatureScaling) -> None:
        network = self._new_network(batch.features.shape[1]).double()
        objective = replace(self._objective(), quadrature=FINE)
        values = fit_full_batch(network, batch, objective, max_iterations=self.epochs)
        if self.max_disparity is not None and _disparity_of(network, batch, objective) > self.max_disparity:
            network, values = self._fit_bounded(batch, objective, self.max_disparity)
        self._network, self._scaling = network.float().eval(), scaling
        self.best_iteration_ = len(values)
        self.evals_result_ = {"training": {objective.report_name: values}}

    def _fit_bounded(self, batch: Batch, objective: FairPolicyGradient, bound: float) -> tuple[Average, list[float]]:
        """Dual ascent: train with the multiplier that the last disparity suggests, until the bound is met closely.

        Every round starts from the same small weights: scores that were trained with too low a multiplier lie far apart, where gradients
        vanish and training would not come back.
        """
        multiplier, penalty = 0.0, 10.0 / max(bound, 1e-9)
        for _ in range(_MOST_ROUNDS):
            network = self._new_network(batch.features.shape[1]).double()
            bounded = replace(objective, strength=multiplier, max_disparity=bound, penalty=penalty)
            values = fit_full_batch(network, batch, bounded, max_iterations=self.epochs)
            excess = _disparity_of(network, batch, objective) - bound
            multiplier = max(0.0, multiplier + penalty * excess)
            if abs(excess) <= _TOLERANCE * bound:
                break
            penalty *= 2
        else:
            warnings.warn(
                f"max_disparity={bound:g} was not met within {_TOLERANCE:.0%}: training ended at {bound + excess:.4g}. "
                f"That much can be reached; raise max_disparity to it, or allow more epochs (now {self.epochs}) a round.",
                stacklevel=5,
            )
        self._used_strength = multiplier
        return network, values

    def _record_validation(self, valid: RankingDataset | None, scaling: FeatureScaling) -> None:
        self.best_score_ = None
        if valid is not None:
            validation = self._validation(valid, scaling, torch.device("cpu"))
            self.best_score_ = validation.score(self._network_scores(validation.features))
            self.evals_result_["valid_0"] = {validation.name: [self.best_score_]}

    def _validation(self, valid: RankingDataset, scaling: FeatureScaling, device: torch.device) -> Validation:
        """Validation by the objective itself, unless a metric is asked for."""
        if self.valid_metric != "objective":
            return super()._validation(valid, scaling, device)
        batch = _whole_batch(valid, scaling)
        objective = replace(self._objective(), estimator="exact", entropy=0.0)

        def score(scores: torch.Tensor) -> float:
            return objective.worth(objective.evaluate(batch.padding.pad(scores.cpu().double()), batch))

        return Validation(batch.features.float().to(device), score, "objective")

    def _report_on(self, batch: Batch) -> None:
        objective = replace(self._objective(), estimator="exact", quadrature=FINE)
        value = objective.evaluate(batch.padding.pad(self._network_scores(batch.features)), batch)
        self.report_ = {
            "utility": float(value.utility.mean()),
            "disparity": value.disparity.mean,
            "strength": self._used_strength,
            "queries_left_out": dict(value.disparity.left_out),
        }


def _disparity_of(network: nn.Module, batch: Batch, objective: FairPolicyGradient) -> float:
    with torch.no_grad():
        return objective.evaluate(batch.padding.pad(network(batch.features)), batch).disparity.mean


def _whole_batch(dataset: RankingDataset, scaling: FeatureScaling) -> Batch:
    """All queries in float64, where quadrature and line search are smooth."""
    features = scaling.apply(dataset.features, dataset.offsets)
    batch = RaggedTensors.of(dataset, features, torch.device("cpu")).batch(np.arange(dataset.num_queries))
    return replace(batch, features=batch.features.double(), labels=batch.labels.double())
