"""Fair-PG-Rank: a Plackett-Luce policy that trades expected reward against disparity of exposure."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import Array, as_double, is_tensor
from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.rows import NetworkRows
from rankpolicy.declarations.settings import ReadWhen, setting, setting_of, settings_class, share_settings
from rankpolicy.declarations.values import ValueKind
from rankpolicy.fairness import FairnessAim, as_aim, encode_groups, parity_offsets
from rankpolicy.fairness.aims import FAIRNESS
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.metrics.expression import reward_for_labels
from rankpolicy.models.inputs.features import FeatureInputs
from rankpolicy.models.linear import Linear
from rankpolicy.models.linear_networks import LinearNetworks
from rankpolicy.objectives.fair_policy_gradient import FairPolicyGradient, FairPolicyGradientSettings
from rankpolicy.policies.race import FINE
from rankpolicy.rankers.fits import DECISIVE, FitOptions, FitSteps
from rankpolicy.rankers.inputs import num_groups_of
from rankpolicy.rankers.networks.dual_ascent import LEAST_TOLERANCE, LEAST_UNIT, TOLERANCE, under_bound
from rankpolicy.rankers.networks.network import NetworkRanker, made_once
from rankpolicy.training import NetworkFit, Validation
from rankpolicy.training.full_batch import FullBatchFit
from rankpolicy.types import NetworkInputs, RankPolicyError

if TYPE_CHECKING:
    import torch

_MOST_ROUNDS = 20


_IN_BATCHES = ReadWhen(
    condition="""training goes in batches; a linear model with estimator "exact" is trained by L-BFGS on all queries at once""",
    holds=lambda ranker: not ranker._trains_on_all_queries,
)


@final
@settings_class
class FairPGRank(NetworkRanker, FairPolicyGradientSettings):
    """Maximise utility - strength * disparity (Singh & Joachims 2019, eq. 1), by exact or sampled gradients.

    ``fairness`` says what is fair: "group", which needs the protected group of every item, "individual", or a value such as
    ``rp.fairness.GroupExposure(merit="exp2", rank_weights=bias)`` that chooses merit, measured position bias and more.
    Instead of ``strength``, ``max_disparity`` may bound the disparity of the training data; a network then runs all its epochs, and of
    those that meet the bound the one with the highest utility is kept (on the validation data if there are some). Linear models are
    trained by L-BFGS on all queries at once.

    With ``rp.fairness.GroupExposure(parity=1.0)`` the groups of every query get the same mean exposure when items are ranked, which leaves
    no group disparity whatever the merits are.

    After fit, ``report_`` holds utility and disparity on the training data (both exact; the utility of a reward that is no sum over items,
    such as "ap", is the mean over 200 rankings per query), the strength used, and how many queries were left out of the disparity and why.
    """

    name: ClassVar[str] = "fair-pg-rank"
    ranks_by_sorting: ClassVar[bool] = False
    value_settings: ClassVar[dict[str, ValueKind[Any]]] = {"fairness": FAIRNESS}
    fitted_attributes: ClassVar[tuple[str, ...]] = (*NetworkRanker.fitted_attributes, "report_")

    strength: float = setting_of(
        FairPolicyGradientSettings,
        "strength",
        read_when=ReadWhen(condition="max_disparity is None", holds=lambda ranker: ranker.max_disparity is None),
    )
    max_disparity: float | None = setting(
        None, "Bound on the mean disparity of the training data, in place of strength; None: no bound.", at_least=0
    )
    model: Any = setting_of(NetworkRanker, "model", default="linear")
    scaling: str = setting_of(NetworkRanker, "scaling", default="standardize")
    epochs: int = setting_of(
        NetworkRanker, "epochs", help="Passes over the training data; for a linear model, most iterations of L-BFGS."
    )
    batch_queries: int = setting_of(NetworkRanker, "batch_queries", read_when=_IN_BATCHES)
    learning_rate: float = setting_of(NetworkRanker, "learning_rate", read_when=_IN_BATCHES)
    betas: tuple[float, ...] = setting_of(NetworkRanker, "betas", read_when=_IN_BATCHES)
    patience: int | None = setting_of(
        NetworkRanker,
        "patience",
        read_when=ReadWhen(
            condition="""max_disparity is None, and the model is not linear with estimator "exact\"""",
            holds=lambda ranker: ranker.max_disparity is None and not ranker._trains_on_all_queries,
        ),
    )
    device: str = setting_of(NetworkRanker, "device", read_when=_IN_BATCHES)
    valid_metric: Any = setting_of(
        NetworkRanker,
        "valid_metric",
        default="objective",
        help="""What is measured on validation data: "objective", utility minus the price of disparity, or a metric.""",
    )

    def _check_settings(self) -> None:
        super()._check_settings()
        self.check_together()

    @property
    def _aim(self) -> FairnessAim:
        return as_aim(self.fairness)

    @property
    def _parity(self) -> float:
        return float(getattr(self._aim, "parity", 0.0))

    @property
    def _trains_on_all_queries(self) -> bool:
        return isinstance(self._model, Linear) and self.estimator == "exact"

    @property
    def _is_array_model(self) -> bool:
        return self._trains_on_all_queries

    def _objective(self, train: RankingDataset) -> FairPolicyGradient:
        return share_settings(
            FairPolicyGradient,
            self,
            reward=reward_for_labels(reward_to_maximise(self.reward), train.label_kind),
            strength=self._used_strength,
            max_disparity=None,
            num_groups=self._num_groups,
        )

    def _training(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> FitSteps:
        self._used_strength = self.strength if self.max_disparity is None else 0.0
        self._num_groups = num_groups_of(train, fairness=self._aim.name)
        inputs = self._inputs_for(train, options)
        everything = made_once(
            options,
            ("everything", id(inputs), self._is_array_model),
            train,
            lambda: self._whole_batch(train, inputs)[1],
        )
        if self._trains_on_all_queries:
            options.refuse_checkpoint("a linear FairPGRank keeps no checkpoints: it is trained in one go.")
            yield from self._fit_linear(self._objective(train), everything, inputs, options)
            self._record_validation(valid, inputs)
        elif self.max_disparity is not None:
            options.refuse_checkpoint(
                "training with max_disparity keeps no checkpoints: they do not hold the price of disparity."
            )
            usual = super()._training(train, valid, options)
            yield from self._training_under_bound(usual, everything, self._objective(train), self.max_disparity)
        else:
            yield from super()._training(train, valid, options)
        scores = everything.padding.pad(self._network_scores(everything.features))
        self.report_ = self._objective(train).report(scores, everything)

    def _fit_linear(
        self, objective: FairPolicyGradient, batch: Batch, inputs: NetworkInputs, options: FitOptions
    ) -> FitSteps:
        network = _in_float64(self._initial_network(inputs, options))
        objective = replace(objective, quadrature=FINE)
        values = yield self._full_batch_fit(network, batch, objective)
        if self.max_disparity is not None and _disparity_of(network, batch, objective) > self.max_disparity:
            network, values = yield from self._fit_bounded(batch, inputs, objective, self.max_disparity)
        self._network, self._inputs = LinearNetworks(network.matrix.astype(np.float32)), inputs
        self.best_iteration_ = len(values)
        self.evals_result_ = {"training": {objective.report_name: values}}

    def _full_batch_fit(self, network: LinearNetworks, batch: Batch, objective: FairPolicyGradient) -> FullBatchFit:
        return FullBatchFit(network, batch, objective, max_iterations=self.epochs, weight_decay=self.weight_decay)

    def _fit_bounded(
        self, batch: Batch, inputs: NetworkInputs, objective: FairPolicyGradient, bound: float
    ) -> Generator[FullBatchFit, Any, tuple[LinearNetworks, list[float]]]:
        """Dual ascent: train with the multiplier that the last disparity suggests, until the bound is met closely.

        Every round starts from the same small weights: scores that were trained with too low a multiplier lie far apart, where gradients
        vanish and training would not recover.
        """
        # A much steeper first penalty is a cliff next to the start, which the line search would not leave.
        multiplier, penalty = 0.0, 10.0 / max(bound, LEAST_UNIT)
        for _ in range(_MOST_ROUNDS):
            network = _in_float64(self._new_network(inputs))
            bounded = replace(objective, strength=multiplier, max_disparity=bound, penalty=penalty)
            values = yield self._full_batch_fit(network, batch, bounded)
            excess = _disparity_of(network, batch, objective) - bound
            multiplier = max(0.0, multiplier + penalty * excess)
            if abs(excess) <= max(TOLERANCE * bound, LEAST_TOLERANCE):
                break
            penalty *= 2
        else:
            warnings.warn(self._missed(bound, bound + excess), stacklevel=5)
        self._used_strength = multiplier
        return network, values

    def _training_under_bound(
        self, fits: FitSteps, everything: Batch, objective: FairPolicyGradient, bound: float
    ) -> FitSteps:
        """The usual training, which ``fits`` asks for, under a bound."""
        fit = next(fits)
        assert isinstance(fit, NetworkFit)
        validation = fit.validation
        epochs = under_bound(fit, objective, bound=bound, whole=everything)
        state = yield fit
        with suppress(StopIteration):
            fits.send(state)
        best_epoch = epochs[state.best_epoch - 1]
        # No warning if disparity was below the bound all the time.
        if max(epoch.disparity for epoch in epochs) > bound and not any(epoch.is_close for epoch in epochs):
            warnings.warn(self._missed(bound, best_epoch.disparity), stacklevel=4)
        self._used_strength, self.best_iteration_ = best_epoch.price, state.best_epoch
        self.best_score_ = None if validation is None else best_epoch.utility
        utilities = [epoch.utility for epoch in epochs]
        self.evals_result_ = {"training": {"disparity": [epoch.disparity for epoch in epochs]}}
        if validation is None:
            self.evals_result_["training"]["utility"] = utilities
        else:
            self.evals_result_[DECISIVE] = {validation.name: utilities}

    def _missed(self, bound: float, reached: float) -> str:
        way_out = "That much can be reached; raise max_disparity to it, or allow" if reached > bound else "Allow"
        return (
            f"max_disparity={bound:g} was not met within {TOLERANCE:.0%}: training ended at {reached:.4g}. "
            f"{way_out} more epochs (now {self.epochs})."
        )

    def _record_validation(self, valid: RankingDataset | None, inputs: NetworkInputs) -> None:
        self.best_score_ = None
        if valid is not None:
            validation = self._validation(valid, inputs, None)
            self.best_score_ = validation.score(self._network_scores(validation.features))
            self.evals_result_[DECISIVE] = {validation.name: [self.best_score_]}

    def _validation(self, valid: RankingDataset, inputs: NetworkInputs, device: torch.device | None) -> Validation:
        """Validation by the objective itself, unless a metric is asked for."""
        if self.valid_metric != "objective":
            return super()._validation(valid, inputs, device)
        features, batch = self._whole_batch(valid, inputs)
        objective = replace(self._objective(valid), entropy=0.0)

        def score(scores: Array) -> float:
            on_host = as_double(scores.cpu() if is_tensor(scores) else scores)
            return float(objective.worth(objective.measure(batch.padding.pad(on_host), batch), batch))

        return Validation(features if device is None else features.to(device), score, "objective")

    @property
    def _needs_queries(self) -> bool:
        return bool(self._parity) or super()._needs_queries

    def _check_exportable(self) -> None:
        if self._parity:
            raise RankPolicyError(
                f"with parity={self._parity:g} FairPGRank cannot be exported to ONNX: scores depend on the protected groups of all "
                "items of a query. Use save(path); ranker.set_params(fairness__parity=0.0).export_onnx(path) writes the scores before "
                "parity."
            )

    @property
    def _ranks_by_groups(self) -> bool:
        return bool(self._parity)

    @property
    def _scores_by_network(self) -> bool:
        return not self._parity

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        scores = super()._scores(dataset)
        if not self._parity:
            return scores
        if dataset.groups_by_query is None:
            raise RankPolicyError(
                "with parity items are ranked by their protected groups: pass protected= (one value per row), or a dataset with groups."
            )
        padding = dataset.padding()
        codes = padding.pad(encode_groups(dataset.groups_by_query).codes)
        bias = self._aim.position_bias(padding.mask.shape[-1])
        offsets = parity_offsets(padding.pad(scores), padding.mask, codes, rank_weights=bias).values
        return scores + self._parity * padding.unpad(offsets)

    def _whole_batch(self, dataset: RankingDataset, inputs: NetworkInputs) -> tuple[NetworkRows, Batch]:
        """What the network reads, and all queries with numbers in float64, where quadrature and line search are smooth."""
        if self._is_array_model:
            assert isinstance(inputs, FeatureInputs)
            ragged = RaggedTensors.of(dataset, inputs.arrays(dataset))
        else:
            import torch

            ragged = RaggedTensors.of(dataset, inputs.read(dataset), torch.device("cpu"))
        batch = ragged.batch(np.arange(len(ragged.offsets) - 1))
        weights = None if batch.query_weights is None else as_double(batch.query_weights)
        features = batch.features
        if not self._reads_texts:
            features = features.astype(np.float64) if isinstance(features, np.ndarray) else features.double()
        return ragged.features, replace(batch, features=features, labels=as_double(batch.labels), query_weights=weights)


def _in_float64(networks: LinearNetworks) -> LinearNetworks:
    return LinearNetworks(networks.matrix.astype(np.float64))


def _disparity_of(network: LinearNetworks, batch: Batch, objective: FairPolicyGradient) -> float:
    disparity = objective.evaluate(batch.padding.pad(network.scores(batch.features)), batch).disparity
    return disparity.weighted_mean(batch.query_weights)
