"""The base of rankers whose scores come from gradient-boosted trees, grown by LightGBM; subclasses supply the objective."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.sparse import SparseFeatures
from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.data.stored.pages import MappedPages
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.heap import give_back_freed_memory
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.optional import require
from rankpolicy.rankers.base import DECISIVE, FitOptions, Ranker
from rankpolicy.rankers.trees.grown_tree import model_text
from rankpolicy.rankers.trees.model_text import checked_model_text
from rankpolicy.rankers.trees.streamed import Gradients, StreamedTrees, TreeSettings, add_scores, can_be_streamed
from rankpolicy.settings import setting, share_settings
from rankpolicy.threads import is_alone
from rankpolicy.training import epoch_progress
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import lightgbm

    from rankpolicy.rankers.exporting.graph import Graph

_TREES = "booster.txt"
# Below this number of rows times trees, one thread is faster: waking others takes as long (measured on two cores).
_ENOUGH_TREE_READS = 200_000
_one_makes_bins = threading.Lock()

ValidationMeasure = Callable[
    [NDArray[np.float64]], float
]  # flat scores (items,) of held-out queries -> higher is better


class TreeObjective(Protocol):
    """A loss that LightGBM does not have built in."""

    @property
    def history(self) -> dict[str, list[float]]:
        """Its training curves: one value per tree, measured before the tree was grown."""
        ...

    def __call__(self, scores: NDArray[np.float64], /) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gradient and Hessian diagonal (items,) of the loss at flat scores (items,)."""
        ...


@dataclass(kw_only=True, eq=False, repr=False)
class TreeRanker(Ranker):
    """The settings that all tree rankers share, with LightGBM's meaning under self-explanatory names.

    Missing values and categories are LightGBM's own: a split sends missing values, and categories not seen in training, to one side.
    """

    uses_query_weights: ClassVar[bool] = True
    scores_sparse: ClassVar[bool] = True
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"num_leaves": leaves, "min_items_in_leaf": items} for leaves in (15, 7, 31) for items in (50, 20, 100)
    )

    num_trees: int = setting(
        1000, "Trees to grow at most; with validation data, training usually stops earlier (see patience).", at_least=1
    )
    learning_rate: float = setting(
        0.05, "Factor on the output of every tree. A lower rate needs more trees and often ranks better.", above=0
    )
    num_leaves: int = setting(
        15, "Leaves per tree. More leaves fit finer structure and overfit small data.", at_least=2, at_most=131072
    )
    min_items_in_leaf: int = setting(
        50, "Items that a leaf must hold at least. Lower it for small data, raise it against overfitting.", at_least=0
    )
    feature_fraction: float = setting(0.8, "Share of the features drawn at random for each tree.", above=0, at_most=1)
    bagging_fraction: float = setting(0.8, "Share of the items drawn at random for each tree.", above=0, at_most=1)
    l2: float = setting(0.0, "L2 penalty on the values of the leaves.", at_least=0)
    patience: int | None = setting(
        50,
        "Trees without improvement on validation data after which training stops; None grows all trees. "
        "Without validation data all trees are grown.",
        at_least=1,
    )
    valid_metric: Any = setting(
        "ndcg@10", "Metric that chooses the best number of trees on validation data, by name or as a metric."
    )
    random_state: int | None = setting(
        0, "Seed of the random choice of features and items. None draws a new one each time."
    )

    def _objective(self, train: RankingDataset) -> TreeObjective | None:
        """The loss on this training data; None where ``_parameters`` names one that LightGBM has built in."""
        return None

    def _trainable(self, train: RankingDataset) -> RankingDataset:
        """The queries this method can learn from."""
        return train

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        name = type(self).__name__
        if options.checkpoint is not None:
            raise RankPolicyError(f"{name} keeps no checkpoints: it trains quickly. Leave checkpoint out.")
        train = self._trainable(train)
        if train.num_items < 2:
            raise RankPolicyError(f"{name} needs two items to split at least; got one sample (n_samples=1).")
        parameters, objective = self._parameters() | _layout(train.features_by_query), self._objective(train)
        sets = {**options.other_sets, **({} if valid is None else {DECISIVE: valid})}
        measures = {key: self._validation(data) for key, data in sets.items()}
        if options.init is None and all(
            can_be_streamed(data.features_by_query, self.num_leaves) and not data.categories
            for data in (train, *sets.values())
        ):
            self._fit_streamed(train, sets, measures, objective, options)
            return
        lightgbm = require("lightgbm", name)
        train_set = self._lightgbm_data(train)
        valid_sets = {key: self._lightgbm_data(data, reference=train_set) for key, data in sets.items()}
        if objective is not None:
            # A function rather than the object: LightGBM deep-copies its parameters.
            parameters["objective"] = lambda scores, data: objective(scores)
        curves: dict[str, list[float]] = {key: [] for key in valid_sets}
        start = None if options.init is None else _kept_trees(options.init)
        with epoch_progress(name, self.num_trees, options.report) as report_epoch:

            def score(scores: NDArray[np.float64], data: Any) -> tuple[str, float, bool]:
                key = next(key for key, each in valid_sets.items() if each is data)
                metric, measure = measures[key]
                curves[key].append(measure(scores))
                return metric, curves[key][-1], True

            def after_tree(env: Any) -> None:
                latest = {} if objective is None else {key: curve[-1] for key, curve in objective.history.items()}
                for key, (metric, _) in measures.items():
                    latest[f"{'validation' if key == DECISIVE else key} {metric}"] = curves[key][-1]
                done = env.iteration + 1 - env.begin_iteration
                is_patient = valid is None or self.patience is None or done - _best(curves[DECISIVE]) < self.patience
                if report_epoch(done, latest) or not is_patient:
                    raise lightgbm.callback.EarlyStopException(env.iteration, [])

            try:
                # Where earlier trees have to score the items first, LightGBM makes the bins itself.
                if start is None:
                    _make_bins(train_set, *valid_sets.values())
                self._booster = lightgbm.train(
                    parameters,
                    train_set,
                    self.num_trees,
                    valid_sets=list(valid_sets.values()) or None,
                    feval=score if valid_sets else None,
                    init_model=start,
                    callbacks=[after_tree],
                )
            except (lightgbm.basic.LightGBMError, ValueError) as error:
                if isinstance(error, RankPolicyError):
                    raise
                if "num_features()" in str(error):
                    raise _no_feature_splits(train.num_items, self.min_items_in_leaf) from None
                raise RankPolicyError(
                    f"LightGBM refuses these settings: {str(error).split(' at /')[0]}. Change them on {self!r}."
                ) from None
        before = 0 if start is None else start.current_iteration()
        self._keep_curves(self._booster.current_iteration() - before, curves, measures, objective, before=before)

    def _fit_streamed(
        self,
        train: RankingDataset,
        sets: dict[str, RankingDataset],
        measures: dict[str, tuple[str, ValidationMeasure]],
        objective: TreeObjective | None,
        options: FitOptions,
    ) -> None:
        """Grow the trees on stored features without a copy of them, see ``streamed.py``."""
        name = type(self).__name__
        # LightGBM reads the trees in the end; loaded now, it would add 0.1 GB to the memory of training.
        if find_spec("lightgbm") is None:
            require("lightgbm", name)
        for data in (train, *sets.values()):
            self._check_data(data)
        parameters = self._parameters()
        gradients, start = self._gradients(train, objective)
        MappedPages(train.labels_by_query).release()
        give_back_freed_memory()
        growing = StreamedTrees(
            features=cast(StoredFeatures, train.features_by_query),
            settings=share_settings(
                TreeSettings, self, min_hessian_in_leaf=parameters.get("min_sum_hessian_in_leaf", 1e-3)
            ),
            gradients=gradients,
            start=start,
            seed=parameters["seed"],
        )
        scores = {key: np.zeros(data.num_items) for key, data in sets.items()}
        curves: dict[str, list[float]] = {key: [] for key in sets}
        with epoch_progress(name, self.num_trees, options.report) as report_epoch:
            for done in range(1, self.num_trees + 1):
                tree = growing.add_tree()
                if tree is None:
                    break
                latest = {} if objective is None else {key: curve[-1] for key, curve in objective.history.items()}
                for key, data in sets.items():
                    add_scores(tree, cast(StoredFeatures, data.features_by_query), scores[key])
                    metric, measure = measures[key]
                    curves[key].append(measure(scores[key]))
                    latest[f"{'validation' if key == DECISIVE else key} {metric}"] = curves[key][-1]
                is_patient = (
                    DECISIVE not in sets or self.patience is None or done - _best(curves[DECISIVE]) < self.patience
                )
                if report_epoch(done, latest) or not is_patient:
                    break
        if not growing.trees:
            raise _no_feature_splits(train.num_items, self.min_items_in_leaf)
        text, num_trees = model_text(growing.trees, growing.features.values), len(growing.trees)
        del growing, gradients
        self._booster = require("lightgbm", name).Booster(model_str=f"{text}\npandas_categorical:null\n")
        self._keep_curves(num_trees, curves, measures, objective)

    def _keep_curves(
        self,
        num_trees: int,
        curves: dict[str, list[float]],
        measures: dict[str, tuple[str, ValidationMeasure]],
        objective: TreeObjective | None,
        *,
        before: int = 0,
    ) -> None:
        """Note what was measured on the way, and the best number of trees; LightGBM keeps none without early stopping."""
        decisive = curves.get(DECISIVE)
        self.best_iteration_ = before + (num_trees if decisive is None else _best(decisive))
        self.best_score_ = None if decisive is None else max(decisive)
        self.evals_result_ = {} if objective is None else {"training": objective.history}
        self.evals_result_ |= {key: {measures[key][0]: curve} for key, curve in curves.items()}

    def _gradients(self, train: RankingDataset, objective: TreeObjective | None) -> tuple[Gradients, float]:
        """The loss for trees that are not grown by LightGBM, and the score before the first tree."""
        assert objective is not None

        def of_scores(scores: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            gradient, hessian = objective(scores.astype(np.float64))
            return gradient.astype(np.float32), hessian.astype(np.float32)

        return of_scores, 0.0

    def _check_data(self, dataset: RankingDataset) -> None:
        """Refuse what the method cannot learn from."""

    def _check_init(self, init: Any, train: RankingDataset) -> None:
        if type(init) is not type(self):
            raise RankPolicyError(
                f"init must be a fitted {type(self).__name__}, whose trees are kept and added to; got {type(init).__name__}."
            )
        init._require_fitted()

    def _validation(self, valid: RankingDataset) -> tuple[str, ValidationMeasure]:
        """Name and function of the measure by which trees are judged on held-out queries."""
        metric = reward_to_maximise(self.valid_metric)
        return metric.name, lambda scores: mean_over_queries(
            evaluate_scores(scores, valid, [metric])[:, 0], valid.query_weights
        )

    def _parameters(self) -> dict[str, Any]:
        return {
            "metric": "none",
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_items_in_leaf,
            "feature_fraction": self.feature_fraction,
            "bagging_fraction": self.bagging_fraction,
            "bagging_freq": 1,
            "lambda_l2": self.l2,
            # LightGBM itself takes the same seed each time where none is given.
            "seed": secrets.randbelow(1 << 31) if self.random_state is None else self.random_state,
            "deterministic": True,
            # LightGBM holds so many items as float64 while it chooses bins; its own 200,000 may be many times the data.
            "bin_construct_sample_cnt": 50_000,
            "verbosity": -1,
            **({"num_threads": 1} if is_alone() else {}),
        }

    def _lightgbm_data(self, dataset: RankingDataset, *, reference: Any = None) -> lightgbm.Dataset:
        self._check_data(dataset)
        data: lightgbm.Dataset = require("lightgbm", type(self).__name__).Dataset(
            _as_lightgbm_reads(dataset.features_by_query),
            dataset.labels_by_query,
            group=dataset.sizes,
            weight=row_weights(dataset),
            reference=reference,
            params=self._parameters() | _layout(dataset.features_by_query),
            categorical_feature=[(dataset.feature_names or ()).index(name) for name in dataset.categories or ()],
            free_raw_data=False,
        )
        return data

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        features = dataset.features_by_query
        parts = features.blocks() if isinstance(features, StoredFeatures) else [_as_lightgbm_reads(features)]
        is_small = dataset.num_items * self.best_iteration_ < _ENOUGH_TREE_READS
        threads = {"num_threads": 1} if is_small or is_alone() else {}
        return np.concatenate(
            [
                self._booster.predict(
                    np.asarray(part) if isinstance(part, StoredFeatures) else part,
                    num_iteration=self.best_iteration_,
                    **threads,
                )
                for part in parts
            ]
        )

    @property
    def booster_(self) -> lightgbm.Booster:
        """The trees as LightGBM's ``Booster``, whose ``predict`` uses those up to ``best_iteration_``."""
        self._require_fitted()
        booster: lightgbm.Booster = self._booster
        booster.best_iteration = self.best_iteration_
        return booster

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in what all splits gained (feature,); ``feature_importance`` has intervals, and importance on data."""
        gains = np.asarray(self.booster_.feature_importance("gain", iteration=self.best_iteration_), np.float64)
        return gains / (gains.sum() or 1.0)

    def _onnx_scores(self, graph: Graph) -> str:
        from rankpolicy.rankers.exporting.trees import add_trees

        return add_trees(graph, checked_model_text(self._files()[_TREES], num_features=self.num_features_))

    def _files(self) -> dict[str, bytes]:
        return {_TREES: self._booster.model_to_string(num_iteration=self.best_iteration_).encode()}

    def _restore(self, files: dict[str, bytes]) -> None:
        text = checked_model_text(files[_TREES], num_features=self.num_features_)
        self._booster = require("lightgbm", type(self).__name__).Booster(model_str=text)


def _as_lightgbm_reads(features: NDArray[np.float32]) -> Any:
    """An array as it is, of sparse features the matrix, and stored features some rows at a time."""
    if isinstance(features, StoredFeatures):
        from rankpolicy.rankers.trees.stored_rows import stored_rows

        return stored_rows(features)
    return features.matrix if isinstance(features, SparseFeatures) else features


def _make_bins(*sets: lightgbm.Dataset) -> None:
    """Sort values into bins, which takes more memory than the data for a moment: one thread at a time."""
    with _one_makes_bins:
        for each in sets:
            each.construct()
        give_back_freed_memory()


def _layout(features: NDArray[np.float32]) -> dict[str, Any]:
    """How LightGBM arranges its bins: by columns spares the second copy of all bins that it makes to arrange them by rows."""
    return {"force_col_wise" if isinstance(features, StoredFeatures) else "force_row_wise": True}


def _no_feature_splits(num_items: int, min_items: int) -> RankPolicyError:
    return RankPolicyError(
        f"no feature splits the {num_items} items into leaves of min_items_in_leaf={min_items} items "
        "(n_samples=1 or n_features=1 may be too few). Lower min_items_in_leaf, or check the features."
    )


def _best(curve: list[float]) -> int:
    """The number, from 1, of the highest value; of equal ones the first."""
    return int(np.argmax(curve)) + 1


def _kept_trees(init: Any) -> lightgbm.Booster:
    """The trees up to the best iteration of a fitted ranker, as a booster of its own."""
    text = init._booster.model_to_string(num_iteration=init.best_iteration_)
    booster: lightgbm.Booster = require("lightgbm", type(init).__name__).Booster(model_str=text)
    return booster


def row_weights(dataset: RankingDataset) -> NDArray[np.float64] | None:
    """The weight of each item's query (items,), with mean 1 over queries; None where all are equal."""
    if dataset.query_weights is None:
        return None
    return np.asarray(np.repeat(dataset.query_weights / dataset.query_weights.mean(), dataset.sizes), np.float64)
