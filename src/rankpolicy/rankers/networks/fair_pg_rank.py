"""Fair-PG-Rank: a Plackett-Luce policy that trades expected reward against disparity of exposure."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.scaling import FeatureScaling, fit_scaling
from rankpolicy.fairness import encode_groups, parity_offsets
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.metrics.estimated_relevances import reward_for_labels
from rankpolicy.models import Average
from rankpolicy.objectives import FairPolicyGradient
from rankpolicy.policies.race import FINE
from rankpolicy.rankers.base import Course
from rankpolicy.rankers.inputs import num_groups_of
from rankpolicy.rankers.networks.dual_ascent import LEAST_TOLERANCE, TOLERANCE, fit_by_dual_ascent
from rankpolicy.rankers.networks.network import NetworkRanker, usable_device
from rankpolicy.rankers.networks.text_inputs import TextInputs
from rankpolicy.training import TrainingSettings, Validation, epoch_progress
from rankpolicy.training.full_batch import fit_full_batch
from rankpolicy.types import RankPolicyError

_MOST_ROUNDS = 20


@final
@dataclass(kw_only=True, eq=False, repr=False)
class FairPGRank(NetworkRanker):
    """Maximise utility - strength * disparity (Singh & Joachims 2019), by exact gradients.

    ``fairness`` is "group" (needs the protected group of every item) or "individual". Instead of ``strength``, ``max_disparity`` may
    bound the disparity of the training data; a network then runs all its epochs, and the best of those that meet the bound is kept, by
    utility on the validation data where there are some. Linear models are trained by L-BFGS on all queries at once: the same data, the same
    weights.

    ``parity`` closes the gap between groups when items are ranked: at 1 the groups of every query have the same mean exposure, which leaves
    no group disparity whatever the merits turn out to be; at 0.5 their scores move half the way there. Items can then only be ranked with
    their groups.

    After fit, ``report_`` holds utility and disparity (both exact, on the training data), the strength used, and how many queries were left
    out of the disparity and why.
    """

    name: ClassVar[str] = "fair-pg-rank"
    ranks_by_sorting: ClassVar[bool] = False
    learns_from_texts: ClassVar[bool] = False
    fitted_attributes: ClassVar[tuple[str, ...]] = (*NetworkRanker.fitted_attributes, "report_")

    reward: Any = "ndcg"
    fairness: str = "group"
    strength: float = 1.0
    max_disparity: float | None = None
    parity: float = 0.0
    merit: str = "identity"
    entropy: float = 0.0
    estimator: str = "exact"
    num_samples: int = 10
    control: str = "leave_one_out"
    model: str = "linear"
    scaling: str = "standardize"
    valid_metric: Any = "objective"

    def _objective(self, train: RankingDataset) -> FairPolicyGradient:
        return FairPolicyGradient(
            reward=reward_for_labels(reward_to_maximise(self.reward), train.label_kind),
            fairness=self.fairness,
            strength=self._used_strength,
            parity=self.parity,
            merit=self.merit,
            num_groups=self._num_groups,
            entropy=self.entropy,
            estimator=self.estimator,
            num_samples=self.num_samples,
            control=self.control,
        )

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, course: Course) -> None:
        if self.max_disparity is not None and self.max_disparity < 0:
            raise RankPolicyError(f"max_disparity must be 0 or more; got {self.max_disparity}.")
        self._used_strength = self.strength if self.max_disparity is None else 0.0
        self._num_groups = num_groups_of(train, fairness=self.fairness)
        scaling = fit_scaling(self.scaling, train)
        everything = _whole_batch(train, scaling)
        if self.model == "linear" and self.estimator == "exact":
            if course.checkpoint is not None:
                raise RankPolicyError(
                    "a linear FairPGRank keeps no checkpoints: it is trained in one go. Leave checkpoint out."
                )
            self._fit_linear(self._objective(train), everything, scaling)
            self._record_validation(valid, scaling)
        elif self.max_disparity is not None:
            if course.checkpoint is not None:
                raise RankPolicyError(
                    "training with max_disparity keeps no checkpoints: they do not hold the price of disparity. Leave checkpoint out."
                )
            self._fit_bounded_network(train, valid, course, everything, scaling, self.max_disparity)
        else:
            super()._fit(train, valid, course)
        scores = everything.padding.pad(self._network_scores(everything.features))
        self.report_ = self._objective(train).report(scores, everything)

    def _fit_linear(self, objective: FairPolicyGradient, batch: Batch, scaling: FeatureScaling) -> None:
        network = self._new_network(batch.features.shape[1]).double()
        objective = replace(objective, quadrature=FINE)
        values = self._fit_full_batch(network, batch, objective)
        if self.max_disparity is not None and _disparity_of(network, batch, objective) > self.max_disparity:
            network, values = self._fit_bounded(batch, objective, self.max_disparity)
        self._network, self._inputs = network.float().eval(), scaling
        self.best_iteration_ = len(values)
        self.evals_result_ = {"training": {objective.report_name: values}}

    def _fit_full_batch(self, network: nn.Module, batch: Batch, objective: FairPolicyGradient) -> list[float]:
        settings = self._training_settings()
        return fit_full_batch(
            network, batch, objective, max_iterations=settings.epochs, weight_decay=settings.weight_decay
        )

    def _training_settings(self) -> TrainingSettings:
        return TrainingSettings(
            epochs=self.epochs,
            batch_queries=self.batch_queries,
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=self.random_state,
        )

    def _fit_bounded(self, batch: Batch, objective: FairPolicyGradient, bound: float) -> tuple[Average, list[float]]:
        """Dual ascent: train with the multiplier that the last disparity suggests, until the bound is met closely.

        Every round starts from the same small weights: scores that were trained with too low a multiplier lie far apart, where gradients
        vanish and training would not come back.
        """
        multiplier, penalty = 0.0, 10.0 / max(bound, 1e-9)
        for _ in range(_MOST_ROUNDS):
            network = self._new_network(batch.features.shape[1]).double()
            bounded = replace(objective, strength=multiplier, max_disparity=bound, penalty=penalty)
            values = self._fit_full_batch(network, batch, bounded)
            excess = _disparity_of(network, batch, objective) - bound
            multiplier = max(0.0, multiplier + penalty * excess)
            if abs(excess) <= max(TOLERANCE * bound, LEAST_TOLERANCE):
                break
            penalty *= 2
        else:
            warnings.warn(self._missed(bound, bound + excess), stacklevel=5)
        self._used_strength = multiplier
        return network, values

    def _fit_bounded_network(
        self,
        train: RankingDataset,
        valid: RankingDataset | None,
        course: Course,
        everything: Batch,
        scaling: FeatureScaling,
        bound: float,
    ) -> None:
        device = usable_device(self.device)
        network = self._new_network(everything.features.shape[1]).to(device)
        validation = None if valid is None else self._validation(valid, scaling, device)
        with epoch_progress(type(self).__name__, self.epochs, enabled=course.progress) as report_epoch:
            epochs, best = fit_by_dual_ascent(
                network,
                RaggedTensors.of(train, scaling.apply(train.features, train.offsets), device),
                self._objective(train),
                bound=bound,
                whole=everything,
                settings=self._training_settings(),
                validation=validation,
                report_epoch=report_epoch,
            )
        kept = epochs[best - 1]
        # Below the bound all the time it has nothing to meet; an epoch that was below it before it came to bear does not meet it.
        if max(epoch.disparity for epoch in epochs) > bound and not any(epoch.is_close for epoch in epochs):
            warnings.warn(self._missed(bound, kept.disparity), stacklevel=4)
        self._network, self._inputs = network, scaling
        self._used_strength, self.best_iteration_ = kept.price, best
        self.best_score_ = None if validation is None else kept.utility
        utilities = [epoch.utility for epoch in epochs]
        self.evals_result_ = {"training": {"disparity": [epoch.disparity for epoch in epochs]}}
        if validation is None:
            self.evals_result_["training"]["utility"] = utilities
        else:
            self.evals_result_["valid_0"] = {validation.name: utilities}

    def _missed(self, bound: float, reached: float) -> str:
        way_out = "That much can be reached; raise max_disparity to it, or allow" if reached > bound else "Allow"
        return (
            f"max_disparity={bound:g} was not met within {TOLERANCE:.0%}: training ended at {reached:.4g}. "
            f"{way_out} more epochs (now {self.epochs})."
        )

    def _record_validation(self, valid: RankingDataset | None, scaling: FeatureScaling) -> None:
        self.best_score_ = None
        if valid is not None:
            validation = self._validation(valid, scaling, torch.device("cpu"))
            self.best_score_ = validation.score(self._network_scores(validation.features))
            self.evals_result_["valid_0"] = {validation.name: [self.best_score_]}

    def _validation(
        self, valid: RankingDataset, inputs: FeatureScaling | TextInputs, device: torch.device
    ) -> Validation:
        """Validation by the objective itself, unless a metric is asked for."""
        if self.valid_metric != "objective":
            return super()._validation(valid, inputs, device)
        assert isinstance(inputs, FeatureScaling), "learns_from_texts is False"
        batch = _whole_batch(valid, inputs)
        objective = replace(self._objective(valid), estimator="exact", entropy=0.0)

        def score(scores: torch.Tensor) -> float:
            return objective.worth(objective.evaluate(batch.padding.pad(scores.cpu().double()), batch), batch)

        return Validation(batch.features.float().to(device), score, "objective")

    @property
    def _needs_queries(self) -> bool:
        return bool(self.parity) or super()._needs_queries

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        scores = super()._scores(dataset)
        if not self.parity:
            return scores
        if dataset.groups is None:
            raise RankPolicyError(
                "with parity items are ranked by their protected groups: pass protected= (one value per row), or a dataset with groups."
            )
        padding = dataset.padding()
        codes = padding.pad(encode_groups(dataset.groups).codes)
        offsets = parity_offsets(padding.pad(torch.from_numpy(scores)), padding.mask, codes).values
        return scores + self.parity * padding.unpad(offsets).numpy()


def _disparity_of(network: nn.Module, batch: Batch, objective: FairPolicyGradient) -> float:
    with torch.no_grad():
        disparity = objective.evaluate(batch.padding.pad(network(batch.features)), batch).disparity
    return disparity.weighted_mean(batch.query_weights)


def _whole_batch(dataset: RankingDataset, scaling: FeatureScaling) -> Batch:
    """All queries in float64, where quadrature and line search are smooth."""
    features = scaling.apply(dataset.features, dataset.offsets)
    batch = RaggedTensors.of(dataset, features, torch.device("cpu")).batch(np.arange(dataset.num_queries))
    weights = None if batch.query_weights is None else batch.query_weights.double()
    return replace(batch, features=batch.features.double(), labels=batch.labels.double(), query_weights=weights)
