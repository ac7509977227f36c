"""Rankers whose scores come from a network trained by the fit loop; what is left to each is its objective."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.data.batches import RaggedTensors
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.scaling import FeatureScaling, fit_scaling
from rankpolicy.evaluation.evaluate import evaluate_scores
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.models import Average, build_model
from rankpolicy.objectives import Objective
from rankpolicy.optional import require
from rankpolicy.rankers.base import Course, Ranker
from rankpolicy.training import TrainingSettings, Validation, epoch_progress, fit_network
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkRanker(Ranker):
    """Settings that all network rankers share."""

    model: str = "mlp"
    hidden: tuple[int, ...] = (64, 64)
    dropout: float = 0.3
    num_networks: int = 1  # networks trained side by side, their scores averaged
    scaling: str = "quantile"
    epochs: int = 100
    batch_queries: int = 32
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    patience: int | None = 15
    valid_metric: Any = "ndcg@10"
    random_state: int = 0
    device: str = "cpu"

    @abstractmethod
    def _objective(self) -> Objective: ...

    def _trainable(self, train: RankingDataset) -> RankingDataset:
        """The queries this method can learn from."""
        return train

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, course: Course) -> None:
        settings = TrainingSettings(
            epochs=self.epochs,
            batch_queries=self.batch_queries,
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            patience=self.patience,
            seed=self.random_state,
        )
        objective, device = self._objective(), _device(self.device)
        train = self._trainable(train)
        scaling = fit_scaling(self.scaling, train)
        network = self._new_network(scaling.num_scaled(train.num_features)).to(device)
        validation = None if valid is None else self._validation(valid, scaling, device)
        with epoch_progress(type(self).__name__, self.epochs, enabled=course.progress) as report_epoch:
            state = fit_network(
                network,
                RaggedTensors.of(train, scaling.apply(train.features, train.offsets), device),
                objective,
                settings=settings,
                validation=validation,
                report_epoch=report_epoch,
                checkpoint=course.checkpoint,
                resume=course.resume,
            )
        self._network, self._scaling = network, scaling
        self.best_iteration_ = state.best_epoch if valid is not None else state.epoch
        self.best_score_ = state.best_score if valid is not None else None
        self.evals_result_ = {"training": {objective.report_name: state.reports}}
        if validation is not None:
            self.evals_result_["valid_0"] = {validation.name: state.scores}

    def _new_network(self, num_features: int) -> Average:
        if self.num_networks < 1:
            raise RankPolicyError(f"num_networks must be at least 1; got {self.num_networks}.")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            return Average(
                build_model(self.model, num_features, hidden=tuple(map(int, self.hidden)), dropout=self.dropout)
                for _ in range(self.num_networks)
            )

    def _validation(self, valid: RankingDataset, scaling: FeatureScaling, device: torch.device) -> Validation:
        metric = reward_to_maximise(self.valid_metric)
        features = torch.from_numpy(scaling.apply(valid.features, valid.offsets)).to(device)

        def score(scores: torch.Tensor) -> float:
            return float(np.nanmean(evaluate_scores(scores.cpu().numpy(), valid, [metric])))

        return Validation(features, score, metric.name)

    @property
    def _needs_queries(self) -> bool:
        self._require_fitted()
        return self._scaling.needs_queries

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        features = self._scaling.apply(dataset.features, dataset.offsets)
        return self._network_scores(torch.from_numpy(features)).numpy()

    def _network_scores(self, features: torch.Tensor) -> torch.Tensor:
        """Scores (items,) of scaled features on any device, in float64 on the CPU."""
        weight = next(self._network.parameters())
        with torch.no_grad():
            return self._network(features.to(weight)).double().cpu()

    def _files(self) -> dict[str, bytes]:
        tensors = {f"network.{name}": weight.cpu().contiguous() for name, weight in self._network.state_dict().items()}
        tensors |= {f"scaling.{name}": torch.from_numpy(array) for name, array in self._scaling.to_arrays().items()}
        return {"weights.safetensors": require("safetensors.torch", "A model file").save(tensors)}

    def _restore(self, files: dict[str, bytes]) -> None:
        parts: dict[str, dict[str, torch.Tensor]] = {"network": {}, "scaling": {}}
        for name, tensor in require("safetensors.torch", "A model file").load(files["weights.safetensors"]).items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        self._scaling = FeatureScaling.from_arrays(
            self.scaling, {name: tensor.numpy() for name, tensor in parts["scaling"].items()}
        )
        self._network = self._new_network(self._scaling.num_scaled(self.num_features_))
        self._network.load_state_dict(parts["network"])
        self._network.eval()


def _device(name: str) -> torch.device:
    """The device of this name, tried out: torch finds out only at first use that there is none."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RankPolicyError(
            f"device must be one that torch can use here, such as 'cpu'; got {name!r} ({str(error).splitlines()[0]})."
        ) from None
    return device
