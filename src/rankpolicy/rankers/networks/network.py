"""Rankers whose scores come from a network trained by the fit loop; what is left to each is its objective."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from rankpolicy.data.batches import RaggedTensors
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.scaling import FeatureScaling, fit_scaling
from rankpolicy.data.texts.question_answering import from_texts
from rankpolicy.data.texts.text_pairs import TextPairs
from rankpolicy.evaluation.measure import evaluate_scores
from rankpolicy.evaluation.weighted import mean_over_queries
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.models import MODELS, Average, build_model
from rankpolicy.models.scoring import scores_of_all
from rankpolicy.objectives import Objective
from rankpolicy.optional import require
from rankpolicy.rankers.base import Course, Ranker
from rankpolicy.rankers.networks.network_settings import NetworkSettings
from rankpolicy.rankers.networks.text_inputs import TextInputs
from rankpolicy.rankers.networks.text_models import TEXT_MODELS, check_weights, new_text_network
from rankpolicy.training import TrainingSettings, Validation, epoch_progress, fit_network
from rankpolicy.types import RankPolicyError, Reward, unknown_name


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkRanker(NetworkSettings, Ranker):
    """Settings that all network rankers share."""

    uses_query_weights: ClassVar[bool] = True
    learns_from_texts: ClassVar[bool] = True

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

    def _click_weighting(self) -> str:
        from rankpolicy.rankers.networks.click_training import binary_metrics

        reward = getattr(self, "reward", None)
        return "query" if reward is not None and binary_metrics(reward_to_maximise(reward)) else "item"

    def _reward_of(self, reward: Any) -> Reward:
        """What is maximised; of labels estimated from clicks, only what these can tell."""
        from rankpolicy.rankers.networks.click_training import reward_on_relevances

        given = reward_to_maximise(reward)
        return reward_on_relevances(given) if self._labels_are_relevances else given

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
        objective, device = self._objective(), usable_device(self.device)
        train = self._trainable(train)
        inputs = self._fit_inputs(train)
        network = self._network_of(inputs, train.num_features).to(device)
        validation = None if valid is None else self._validation(valid, inputs, device)
        with epoch_progress(type(self).__name__, self.epochs, enabled=course.progress) as report_epoch:
            state = fit_network(
                network,
                RaggedTensors.of(train, _read(train, inputs), device),
                objective,
                settings=settings,
                validation=validation,
                report_epoch=report_epoch,
                checkpoint=course.checkpoint,
                resume=course.resume,
            )
        self._network, self._inputs = network, inputs
        self.best_iteration_ = state.best_epoch if valid is not None else state.epoch
        self.best_score_ = state.best_score if valid is not None else None
        self.evals_result_ = {"training": {objective.report_name: state.reports, **state.parts}}
        if validation is not None:
            self.evals_result_["valid_0"] = {validation.name: state.scores}

    @property
    def _reads_texts(self) -> bool:
        if not isinstance(self.model, str):
            return False
        known = {**MODELS, **(TEXT_MODELS if self.learns_from_texts else {})}
        if self.model not in known:
            raise RankPolicyError(unknown_name("model", self.model, known))
        return self.model in TEXT_MODELS

    def _fit_inputs(self, train: RankingDataset) -> FeatureScaling | TextInputs:
        if self._reads_texts:
            return TEXT_MODELS[self.model].reads().fit(self, train, self.device)
        return fit_scaling(self.scaling, train)

    def _network_of(self, inputs: FeatureScaling | TextInputs, num_features: int) -> Average:
        if isinstance(inputs, FeatureScaling):
            return self._new_network(inputs.num_scaled(num_features))
        return self._averaged(lambda: new_text_network(inputs, self))

    def _new_network(self, num_features: int) -> Average:
        return self._averaged(lambda: self._new_member(num_features))

    def _averaged(self, new_member: Callable[[], nn.Module]) -> Average:
        if self.num_networks < 1:
            raise RankPolicyError(f"num_networks must be at least 1; got {self.num_networks}.")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            return Average(new_member() for _ in range(self.num_networks))

    def _new_member(self, num_features: int) -> nn.Module:
        if not callable(self.model):
            return build_model(self.model, num_features, hidden=tuple(map(int, self.hidden)), dropout=self.dropout)
        network = copy.deepcopy(self.model) if isinstance(self.model, nn.Module) else self.model(num_features)
        try:
            with torch.no_grad():
                outcome = f"the shape {tuple(network.eval()(torch.zeros(2, num_features)).shape)}"
        except RuntimeError as error:
            outcome = f"an error ({str(error).splitlines()[0]})"
        if outcome != "the shape (2,)":
            raise RankPolicyError(
                f"a model must give one score an item: features (items, {num_features}) -> scores (items,); two items gave {outcome}. "
                f"End it with .squeeze(-1); scaling={self.scaling!r} decides how many features it reads."
            )
        return network

    def _validation(
        self, valid: RankingDataset, inputs: FeatureScaling | TextInputs, device: torch.device
    ) -> Validation:
        metric = reward_to_maximise(self.valid_metric)
        features = RaggedTensors.of(valid, _read(valid, inputs), device).features

        def score(scores: torch.Tensor) -> float:
            return mean_over_queries(evaluate_scores(scores.cpu().numpy(), valid, [metric])[:, 0], valid.query_weights)

        return Validation(features, score, metric.name)

    @property
    def _needs_queries(self) -> bool:
        self._require_fitted()
        return isinstance(self._inputs, FeatureScaling) and self._inputs.needs_queries

    def rank_texts(self, query: str, items: Sequence[str]) -> list[tuple[str, float]]:
        """The items, best first, each with its score, by a ranker that reads texts; equal scores keep the given order."""
        if isinstance(items, str):
            raise RankPolicyError(f"items must be a list of texts; got one text, {items!r:.60}. Write [{items!r:.20}].")
        scores = self.predict(from_texts([query], [list(items)]))
        return [(items[index], float(scores[index])) for index in np.argsort(-scores, kind="stable")]

    def export_onnx(self, path: str | Path) -> None:
        """Write a network of texts and side information as an ONNX file; its inputs, which ``onnx_inputs`` makes, are

        query_tokens (query, token), item_tokens (query, item, token), numbers (query, item, number), categories (query, item, category)
        and mask (query, item), of any number of queries, items and tokens from 1 on; its output is scores (query, item), -inf where the
        mask is False. Token 0 is padding.
        """
        from rankpolicy.rankers.networks.onnx_export import export_onnx

        self._require_fitted()
        export_onnx(self._network, path)

    def onnx_inputs(
        self, X: Any, *, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> dict[str, NDArray[Any]]:
        """What the exported network takes for new data, by name: a row a query, in the order of the dataset."""
        from rankpolicy.rankers.networks.onnx_export import exportable_networks, padded_inputs

        dataset = self._to_rank(X, qid, group, None)
        exportable_networks(self._network)
        read = _read(dataset, self._inputs)
        assert isinstance(read, TextPairs), "such networks read texts"
        return padded_inputs(read, dataset.padding())

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        read = _read(dataset, self._inputs)
        return self._network_scores(read if isinstance(read, TextPairs) else torch.from_numpy(read)).numpy()

    def _network_scores(self, features: torch.Tensor | TextPairs) -> torch.Tensor:
        """Scores (items,) of scaled features or texts on any device, in float64 on the CPU."""
        weight = next(self._network.parameters())
        there = features.to(weight.device) if isinstance(features, TextPairs) else features.to(weight)
        with torch.no_grad():
            return scores_of_all(self._network, there).double().cpu()

    def _files(self) -> dict[str, bytes]:
        tensors = {f"network.{name}": weight.cpu().contiguous() for name, weight in self._network.state_dict().items()}
        files = {}
        if isinstance(self._inputs, FeatureScaling):
            tensors |= {f"scaling.{name}": torch.from_numpy(array) for name, array in self._inputs.to_arrays().items()}
        else:
            files = self._inputs.files()
        return {"weights.safetensors": require("safetensors.torch", "A model file").save(tensors), **files}

    def _restore(self, files: dict[str, bytes]) -> None:
        parts: dict[str, dict[str, torch.Tensor]] = {"network": {}, "scaling": {}}
        for name, tensor in require("safetensors.torch", "A model file").load(files["weights.safetensors"]).items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        if isinstance(self.model, str) and self.model not in {**MODELS, **TEXT_MODELS}:
            raise RankPolicyError(
                f"this ranker was trained with a network of one's own, {self.model}: give it again, load(path, model=...)."
            )
        if self._reads_texts:
            self._inputs = TEXT_MODELS[self.model].reads().restore(self, files)
        else:
            self._inputs = FeatureScaling.from_arrays(
                self.scaling, {name: tensor.numpy() for name, tensor in parts["scaling"].items()}
            )
        self._network = self._network_of(self._inputs, self.num_features_)
        check_weights(self._network, parts["network"], what=f"model {self.model!r}")
        self._network.load_state_dict(parts["network"])
        self._network.eval()


def _read(dataset: RankingDataset, inputs: FeatureScaling | TextInputs) -> NDArray[np.float32] | TextPairs:
    """What the network takes of a dataset, a row an item."""
    if isinstance(inputs, FeatureScaling):
        return inputs.apply(dataset.features, dataset.offsets)
    return inputs.pairs(dataset)


def usable_device(name: str) -> torch.device:
    """The device of this name, tried out: torch finds out only at first use that there is none."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RankPolicyError(
            f"device must be one that torch can use here, such as 'cpu'; got {name!r} ({str(error).splitlines()[0]})."
        ) from None
    return device
