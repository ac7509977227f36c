"""Rankers whose scores come from a network trained by the fit loop; each of them adds its objective."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import safetensors.numpy
from numpy.typing import ArrayLike, NDArray

from rankpolicy.arrays import Array, is_tensor, to_numpy
from rankpolicy.data.batches import RaggedTensors
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.fingerprints import fingerprint
from rankpolicy.data.rows import NetworkRows, QueryRows
from rankpolicy.data.scaling import SCALINGS
from rankpolicy.data.texts.question_answering import from_texts
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.declarations.settings import ReadWhen, setting, setting_names
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.kernels import HAS_TRITON
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.metrics.expression import reward_for_labels
from rankpolicy.models.inputs.features import FeatureInputs
from rankpolicy.models.linear import Linear
from rankpolicy.models.linear_networks import LinearNetworks
from rankpolicy.models.members import MODELS, models_with_setting
from rankpolicy.models.model import FeatureModel, Model, as_model
from rankpolicy.models.saved_weights import check_num_networks, check_weights
from rankpolicy.objectives import Objective
from rankpolicy.optional import require
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.fits import DECISIVE, FitOptions, FitSteps, Made, TrainingRequest
from rankpolicy.rankers.networks.fine_tuning import check_network_init
from rankpolicy.training import NetworkFit, TrainingSettings, TrainingState, Validation, epoch_progress
from rankpolicy.training.data_parallel import current_worker
from rankpolicy.training.full_batch import FullBatchFit, fit_full_batches
from rankpolicy.training.loop import train_network
from rankpolicy.training.network_fit import Network, check_betas
from rankpolicy.types import NetworkInputs, RankPolicyError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from rankpolicy.rankers.exporting.engine_models import Layers, Trees
    from rankpolicy.rankers.exporting.graph import Graph

logger = logging.getLogger("rankpolicy.training")

_WEIGHTS = "weights.safetensors"
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_FEW_ITEMS = 8192  # scored all at once
_READS_FEATURES = ReadWhen(
    condition="the model reads features, not texts", holds=lambda ranker: ranker._model.reads == "features"
)


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkRanker(Ranker, TrainingSettings):
    """Settings and methods that all network rankers share."""

    uses_query_weights: ClassVar[bool] = True
    learns_from_relevances: ClassVar[bool] = True

    model: Any = setting(
        "mlp",
        """The network: a name ("linear", "mlp", "highway", "list-transformer"; for texts "mcan", "bilstm", "encoder", "matching-cross",
        "deep-matching-cross", "match", "latent-cross", "concatenation", "concatenation-cross", "cross-network"), a value with settings
        such as rp.models.MLP(hidden=(32,)), a torch module from features (items, features) to scores (items,), or a function of the number
        of features that makes one.""",
    )
    num_networks: int = setting(
        1,
        "How many networks are trained side by side and averaged. More of them, up to about four, vary less from seed to seed and take "
        "proportionally longer.",
        at_least=1,
    )
    scaling: str = setting(
        "quantile",
        """How features are scaled: "standardize" (mean 0, spread 1), "quantile" (that, with the quantile of each value as a second
        feature), "log1p" (logarithm, then standardized), "query_minmax" (0 to 1 within each query) or "none".""",
        choices=SCALINGS,
        read_when=_READS_FEATURES,
    )
    valid_metric: Any = setting(
        "ndcg@10", "The metric on validation data by which training stops and the best epoch is kept."
    )
    device: str = setting(
        "cpu",
        """Torch device of training and prediction, such as "cpu" or "cuda"; "auto" takes a CUDA device if there is one.""",
    )

    def _check_settings(self) -> None:
        as_model(self.model)
        super()._check_settings()
        if len(self.betas) != 2:
            check_betas(self.betas)

    @property
    def _model(self) -> Model:
        return as_model(self.model)

    def _nested_settings(self) -> Mapping[str, Any]:
        nested = super()._nested_settings()
        return nested if self._model.name not in MODELS else {"model": self._model, **nested}

    def _plain_settings(self) -> dict[str, Any]:
        return super()._plain_settings() | {"model": self._model.to_dict()}

    @classmethod
    def where_setting_belongs(cls, name: str) -> str | None:
        """Where a setting that this ranker does not have belongs: to a model or to other rankers; None if nothing has it.

        Parameters
        ----------
        name
            The name of the setting.
        """
        name = name.removeprefix("model__")  # set_params takes model__hidden, the constructor a model
        models = [] if cls.value_with_setting(name) else models_with_setting(name)
        default_models = [model for model in models if model.name == cls.model]
        if not models:
            return super().where_setting_belongs(name)
        return f"it belongs to the model: model=rp.models.{(default_models or models)[0].__name__}({name}=...)"

    @property
    def _is_array_model(self) -> bool:
        """Whether the networks are linear and held as arrays, which are fitted without torch; others are modules of torch."""
        return False

    @abstractmethod
    def _objective(self, train: RankingDataset) -> Objective:
        """What is minimised, given what the labels of the dataset mean."""

    def _trainable(self, train: RankingDataset) -> RankingDataset:
        """The queries this method can learn from."""
        return train

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        steps, outcome = self._training(train, valid, options), None
        while True:
            try:
                request = steps.send(outcome)
            except StopIteration:
                return
            outcome = _trained(request)

    def _training(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> FitSteps:
        """The fit, step by step: yields the networks to be trained and is sent the outcomes, so that several fits can train together."""
        objective, device = self._objective(train), self._usable_device()
        train = _shared_dataset(self._trainable(train), train, options)
        inputs = self._inputs_for(train, options)
        network = self._initial_network(inputs, options)
        if device is not None:
            network.to(device)
        validation = None if valid is None else self._validation(valid, inputs, device)
        others = {name: self._validation(data, inputs, device) for name, data in options.other_sets.items()}
        tensors = made_once(
            options,
            ("tensors", id(inputs), device),
            train,
            lambda: RaggedTensors.of(train, _read_by_rows(inputs, train, device), device),
        )
        with epoch_progress(type(self).__name__, self.epochs, options.report) as report_epoch:
            state: TrainingState = yield NetworkFit(
                network=network,
                train=tensors,
                objective=objective,
                settings=self,
                generator=self._new_generator(device),
                validation=validation,
                other_validations=others,
                report_epoch=report_epoch,
                is_over=options.report.is_over,
                checkpoint=options.checkpoint,
                resume=options.resume,
                data="" if options.checkpoint is None else _fingerprint(train, valid, *options.other_sets.values()),
            )
        self._network, self._inputs = network, inputs
        self.best_iteration_ = state.best_epoch if valid is not None else state.epoch
        self.best_score_ = state.best_score if valid is not None else None
        self.evals_result_ = {"training": {objective.report_name: state.reports, **state.parts}}
        if validation is not None:
            self.evals_result_[DECISIVE] = {validation.name: state.scores}
        self.evals_result_ |= {name: {others[name].name: scores} for name, scores in state.other_scores.items()}

    def _inputs_for(self, train: RankingDataset, options: FitOptions) -> NetworkInputs:
        """How the network reads data: fitted on the training data, or as the ranker to continue from does."""
        if isinstance(options.init, NetworkRanker):
            return options.init._inputs
        model = self._model
        if not isinstance(model, FeatureModel):
            return model.fit_inputs(train, scaling=self.scaling, device=str(usable_device(self.device)))
        return made_once(
            options,
            ("inputs", self.scaling, model.context),
            train,
            partial(model.fit_inputs, train, scaling=self.scaling, device=self.device),
        )

    def _initial_network(self, inputs: NetworkInputs, options: FitOptions) -> Network:
        network = self._new_network(inputs)
        if isinstance(options.init, NetworkRanker):
            weights = options.init._network.state_dict()
            if not self._is_array_model:
                import torch

                weights = {name: torch.as_tensor(weight) for name, weight in weights.items()}
            network.load_state_dict(weights)
        return network

    def _usable_device(self) -> torch.device | None:
        """The device of training; None for arrays."""
        return None if self._is_array_model else usable_device(self.device)

    def _check_init(self, init: Any, train: RankingDataset) -> None:
        check_network_init(self, init, train)

    def _new_generator(self, device: torch.device | None = None) -> Any:
        if self._is_array_model:
            return np.random.default_rng(self.random_state)
        import torch

        generator = torch.Generator(device or "cpu")
        if self.random_state is None:
            generator.seed()
            return generator
        return generator.manual_seed(int(self.random_state))

    @property
    def _reads_texts(self) -> bool:
        return self._model.reads == "texts"

    def _new_network(self, inputs: NetworkInputs) -> Network:
        # On the CPU whatever the device is, so that initial weights do not depend on it.
        generator, model = self._new_generator(), self._model
        if self._is_array_model:
            assert isinstance(model, Linear)
            assert isinstance(inputs, FeatureInputs)
            return model.new_networks(inputs.num_columns, num_networks=self.num_networks, generator=generator)
        from rankpolicy.models.average import Average

        return Average(model.new_network(inputs, generator=generator) for _ in range(self.num_networks))

    def _validation(self, valid: RankingDataset, inputs: NetworkInputs, device: torch.device | None) -> Validation:
        metric = reward_for_labels(reward_to_maximise(self.valid_metric), valid.label_kind)
        features = RaggedTensors.of(valid, _read_by_rows(inputs, valid, device), device).features

        def mean(scores: Array) -> float:
            values = evaluate_scores(to_numpy(scores), valid, [metric])[:, 0]
            return mean_over_queries(values, valid.query_weights)

        return Validation(features, mean, metric.name)

    @property
    def _needs_queries(self) -> bool:
        self._require_fitted()
        return self._inputs.needs_queries

    @checked_kinds
    def rank_texts(self, query: str, items: Sequence[str]) -> list[tuple[str, float]]:
        """The items, best first, each with its score; for rankers whose model reads texts. Equal scores keep the given order.

        Parameters
        ----------
        query
            The text of the query.
        items
            The texts of the items.
        """
        scores = self.predict(from_texts([query], [list(items)]))
        return [(items[index], float(scores[index])) for index in np.argsort(-scores, kind="stable")]

    def export_onnx(self, path: str | Path) -> None:
        """Write the fitted ranker as an ONNX file, which other programs and languages run without this library.

        Of a network over features, scaling included, the input is ``features`` (row, feature), float32: the columns of the training data in
        their order, NaN where a value is missing, and for a categorical column the place of the category in ``categories_``. The output is
        ``scores`` (row,), float32. With scaling="query_minmax" or a model that reads whole queries a second input ``query`` (row,), int64
        from 0, says which rows belong to one query. Memory of a ListTransformer grows with the square of the rows: give the file few
        queries at a time. Metadata holds method, version, feature names and categories. If onnxruntime is installed, the scores of the
        file are compared with those of ``predict``, to 1e-5, before it is written. ``pip install 'rankpolicy[onnx]'``.

        Of a network of texts and side information the inputs, which ``onnx_inputs`` makes, are query_tokens (query, token), item_tokens
        (query, item, token), numbers (query, item, number), categories (query, item, category) and mask (query, item), of any number of
        queries, items and tokens from 1 on; the output is scores (query, item), -inf where the mask is False. Token 0 is padding.

        Parameters
        ----------
        path
            Where the file goes.
        """
        self._require_fitted()
        self._check_exportable()
        if not self._reads_texts:
            super().export_onnx(path)
            return
        from rankpolicy.rankers.exporting.export import file_facts
        from rankpolicy.rankers.networks.onnx_export import export_onnx

        export_onnx(self._network, path, facts=file_facts(self))

    def _check_exportable(self) -> None:
        """Refuse to export a ranker whose scores are more than those of its network."""

    def _onnx_scores(self, graph: Graph) -> str:
        from rankpolicy.rankers.exporting.linear import add_linear
        from rankpolicy.rankers.exporting.scaling import add_scaling

        assert isinstance(self._inputs, FeatureInputs), "the network reads features"
        scaled = add_scaling(graph, self._inputs.scaling)
        if isinstance(self._network, LinearNetworks):
            return add_linear(graph, scaled, self._network.matrix.mean(0))
        from rankpolicy.rankers.exporting.networks import add_deviations, add_network

        if self._inputs.context == "mean":
            scaled = add_deviations(graph, scaled, num_columns=self._inputs.num_columns // 2)
        return add_network(graph, scaled, self._network, num_columns=self._inputs.num_columns)

    def _engine_model(self, names: Sequence[str]) -> Trees | Layers:
        from rankpolicy.rankers.exporting.engine_models import Layers

        self._check_exportable()
        if not isinstance(self._inputs, FeatureInputs) or self._inputs.context == "mean":
            return super()._engine_model(names)
        if isinstance(self._network, LinearNetworks):
            *weights, bias = self._network.matrix.mean(0)
            return Layers.of_weights(self._inputs.scaling, np.array(weights), bias=bias, method=type(self).__name__)
        return Layers.of_networks(
            self._inputs.scaling, list(self._network.members), len(names), method=type(self).__name__
        )

    def onnx_inputs(
        self, X: Any, *, qid: str | ArrayLike | None = None, group: ArrayLike | None = None
    ) -> dict[str, NDArray[Any]]:
        """The inputs of the exported file for new data, by name.

        For a network over features its scores are in the order of the given rows; a frame is matched by column names, and categories become
        the numbers that the file reads. For a network of texts there is one row per query, in the order of the dataset.

        Parameters
        ----------
        X
            A RankingDataset, a matrix or frame of features (rows, features), or a click table.
        qid
            The query of each row, where X does not say it and the network needs it.
        group
            Sizes of the queries, instead of ``qid``.
        """
        self._require_fitted()
        if not self._reads_texts:
            return super().onnx_inputs(X, qid=qid, group=group)
        from rankpolicy.rankers.networks.onnx_export import exportable_networks, padded_inputs

        dataset = self._to_rank(X, qid, group, None)
        exportable_networks(self._network)
        return padded_inputs(self._inputs.read(dataset), dataset.padding())

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        if isinstance(self._network, LinearNetworks):
            return self._network.scores(_read_by_rows(self._inputs, dataset, None)).astype(np.float64)
        return scores_of_rankers([self], dataset)[0].numpy()

    @property
    def _scores_by_network(self) -> bool:
        """Whether scores are those of the network, without anything added."""
        return True

    def _quick_scores(self, features: NDArray[Any]) -> NDArray[np.float64] | None:
        inputs = self.__dict__.get("_inputs")
        if type(inputs) is not FeatureInputs or inputs.needs_queries or self.device != "cpu":
            return None
        is_small = features.ndim == 2 and 0 < len(features) <= _FEW_ITEMS
        if not is_small or features.shape[1] != self.num_features_ or features.dtype not in _FLOATS:
            return None
        if features.dtype == np.float32 and features.flags.c_contiguous:
            matrix = features
        else:
            with np.errstate(over="ignore"):
                matrix = np.ascontiguousarray(features, np.float32)
        scaled = inputs.scaling.of_finite_rows(matrix)
        if scaled is None:
            return None
        if isinstance(self._network, LinearNetworks):
            return self._network.scores(scaled).astype(np.float64)
        import torch

        with torch.no_grad():
            # Not called as a module, which costs as much as a layer.
            scores = self._network.forward(torch.from_numpy(scaled))
        return scores.numpy().astype(np.float64)

    def _network_scores(self, features: NetworkRows) -> Array:
        """Scores (items,) of features or texts on any device, in float64 on the CPU."""
        if isinstance(self._network, LinearNetworks):
            return self._network.scores(features).astype(np.float64)
        return _scores_of_networks([self._network], features)[0]

    def _files(self) -> dict[str, bytes]:
        weights = self._network.state_dict()
        if isinstance(self._network, LinearNetworks):
            content = safetensors.numpy.save(weights)
        else:
            on_host = {name: weight.cpu().contiguous() for name, weight in weights.items()}
            content = require("safetensors.torch", "A model file").save(on_host)
        return {_WEIGHTS: content, **self._inputs.files()}

    def _restore(self, files: dict[str, bytes]) -> None:
        if isinstance(self.model, dict):
            self.model = _restored_model(self.model)
        self._inputs = self._model.restore_inputs(files, scaling=self.scaling, num_features=self.num_features_)
        what, is_own = f"model {self._model.name!r}", self._model.name not in MODELS
        package = "numpy" if self._is_array_model else "torch"
        weights = require(f"safetensors.{package}", f"A {what}").load(files[_WEIGHTS])
        if not is_own:
            # The settings in a file may ask for any size: shapes are compared before anything is allocated.
            check_num_networks(self.num_networks, weights)
        if not is_own and not self._is_array_model:
            import torch

            from rankpolicy.models.average import Average

            num_hidden = len(getattr(self._model, "hidden", ()))
            if num_hidden > len(weights):
                raise RankPolicyError(
                    f"the file says {num_hidden} hidden layers, but holds {len(weights)} weights. Copy or train the model again."
                )
            with torch.device("meta"):
                shapes = Average(self._model.new_network(self._inputs) for _ in range(self.num_networks))
            check_weights(shapes, weights, what=what)
        self._network = self._new_network(self._inputs)
        check_weights(self._network, weights, what=what)
        self._network.load_state_dict(weights)
        if not self._is_array_model:
            self._network.eval()


def scores_of_rankers(rankers: Sequence[NetworkRanker], dataset: RankingDataset) -> Tensor:
    """Scores (ranker, item) by the networks of one ranker, or of several whose networks have equal shape and read the same."""
    import torch

    features = _read_by_rows(rankers[0]._inputs, dataset, torch.device("cpu"))
    return _scores_of_networks([ranker._network for ranker in rankers], features)


def _scores_of_networks(networks: Sequence[Network], features: NetworkRows) -> Tensor:
    """Scores (network, item) of features or texts on any device, in float64 on the CPU."""
    import torch

    from rankpolicy.models.average import scores_of_all
    from rankpolicy.models.stack import scores_of_each

    weight = next(networks[0].parameters())
    on_device = (
        features.to(weight) if is_tensor(features) or isinstance(features, QueryRows) else features.to(weight.device)
    )
    with torch.no_grad():
        scores = (
            scores_of_all(networks[0], on_device)[None] if len(networks) == 1 else scores_of_each(networks, on_device)
        )
        return scores.double().cpu()


def _trained(request: TrainingRequest) -> Any:
    """The outcome of one training."""
    if isinstance(request, FullBatchFit):
        return fit_full_batches([request])[0]
    is_linear = isinstance(request.network, LinearNetworks)
    if is_linear or (request.generator.device.type == "cpu" and current_worker.get() is None):
        return train_network(request)
    from rankpolicy.training import fit_networks

    return fit_networks([request])[0]


def made_once(options: FitOptions, key: Hashable, source: Any, make: Callable[[], Made]) -> Made:
    """What ``make`` makes of ``source``, shared by the fits that train together."""
    return make() if options.shared is None else options.shared.once(key, source, make)


def _shared_dataset(dataset: RankingDataset, train: RankingDataset, options: FitOptions) -> RankingDataset:
    """The first dataset with the same queries of the training data that a fit of these came upon."""
    if options.shared is None:
        return dataset
    first_of_these = options.shared.once(("kept", dataset.num_queries, dataset.num_items), train, lambda: dataset)
    return first_of_these if np.array_equal(first_of_these.query_ids, dataset.query_ids) else dataset


def _fingerprint(*datasets: RankingDataset | None) -> str:
    """The data of a training run, in a few characters."""
    return " ".join(fingerprint(dataset)[:32] for dataset in datasets if dataset is not None)


def _read_by_rows(inputs: NetworkInputs, dataset: RankingDataset, device: torch.device | None) -> NetworkRows:
    """What the network reads: features by rows on the CPU, so that no scaled copy of all is held; else all of it."""
    if device is None:
        assert isinstance(inputs, FeatureInputs), "arrays hold features"
        return inputs.arrays_by_rows(dataset)
    if isinstance(inputs, FeatureInputs) and device.type == "cpu":
        return inputs.read_by_rows(dataset)
    read: NetworkRows = inputs.read(dataset)
    return read


def _restored_model(saved: Mapping[str, Any]) -> Model:
    """The model whose ``to_dict()`` a file holds."""
    if saved["name"] not in MODELS:
        raise RankPolicyError(
            f"this ranker was trained with a custom network, {saved['name']}, which the file does not hold: load(path, model=...)."
        )
    unknown = sorted(set(saved) - {"name", *setting_names(MODELS[saved["name"]])})
    if unknown:
        raise RankPolicyError(
            f"the file has settings of the model that this version does not know: {', '.join(unknown)}. Update rankpolicy."
        )
    return as_model(saved)


def uses_gpu(name: str) -> bool:
    """Whether a device of this name is another one than the processor; "auto" is what torch finds, if it is installed."""
    if name == "auto" and find_spec("torch") is not None:
        return usable_device(name).type != "cpu"
    return name not in ("cpu", "auto")


def usable_device(name: str) -> torch.device:
    """The device of this name, after a trial: torch notices only at first use that a device does not exist.

    "auto" is a CUDA device where there is one, otherwise the CPU.
    """
    require("torch", "A network")
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
        if name == "cuda" and not HAS_TRITON:
            logger.info("training on CUDA goes without kernels: pip install triton makes it faster")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise RankPolicyError(
            f"device must be one that torch can use here, such as 'cpu' or 'auto'; got {name!r} ({str(error).splitlines()[0]})."
        ) from None
    return device
