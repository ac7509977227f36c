"""The base of rankers whose scores come from gradient-boosted trees, grown by LightGBM; subclasses supply the objective."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import seed_setting, setting
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.optional import require
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.fits import DECISIVE, FitOptions
from rankpolicy.rankers.trees.lightgbm_data import as_matrix, layout, lightgbm_data, make_bins
from rankpolicy.rankers.trees.model_text import checked_model_text
from rankpolicy.threads import this_thread
from rankpolicy.training import epoch_progress
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import lightgbm

    from rankpolicy.rankers.exporting.engine_models import Trees
    from rankpolicy.rankers.exporting.graph import Graph


_TREES = "booster.txt"
# Below this number of rows times trees, one thread is faster: waking others takes as long (measured on two cores).
_ENOUGH_TREE_READS = 200_000

ValidationMeasure = Callable[
    [NDArray[np.float64]], float
]  # flat scores (items,) of held-out queries -> higher is better


class TreeObjective(Protocol):
    """A loss that LightGBM does not have built in."""

    @property
    def history(self) -> dict[str, list[float]]:
        """Its training curves: one value per tree, measured before the tree was grown."""
        ...

    def __call__(self, scores: NDArray[np.float64], /) -> tuple[NDArray[Any], NDArray[Any]]:
        """Gradient and Hessian diagonal (items,) of the loss at flat scores (items,); LightGBM makes float32 of both."""
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
    random_state: int | None = seed_setting(
        0, "Seed of the random choice of features and items. None draws a new one each time."
    )

    def _objective(self, train: RankingDataset) -> TreeObjective | None:
        """The loss on this training data; None where ``_parameters`` names one that LightGBM has built in."""
        return None

    def _trainable(self, train: RankingDataset) -> RankingDataset:
        """The queries this method can learn from."""
        return train

    def _checked_train(self, train: RankingDataset, options: FitOptions) -> RankingDataset:
        name = type(self).__name__
        options.refuse_checkpoint(f"{name} keeps no checkpoints: it trains quickly.")
        trainable = self._trainable(train)
        if trainable.num_items < 2:
            raise RankPolicyError(f"{name} needs two items to split at least; got one sample (n_samples=1).")
        return trainable

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        name = type(self).__name__
        train = self._checked_train(train, options)
        parameters, objective = self._parameters() | layout(train), self._objective(train)
        sets = {**options.other_sets, **({} if valid is None else {DECISIVE: valid})}
        measures = {key: self._validation(data) for key, data in sets.items()}
        lightgbm = require("lightgbm", name)
        for data in (train, *sets.values()):
            self._check_data(data)
        train_set = lightgbm_data(train, parameters)
        valid_sets = {key: lightgbm_data(data, parameters, reference=train_set) for key, data in sets.items()}
        if objective is not None:
            # A function rather than the object: LightGBM deep-copies its parameters.
            parameters["objective"] = lambda scores, data: objective(scores)
        curves: dict[str, list[float]] = {key: [] for key in valid_sets}
        earlier_trees = None if options.init is None else _trees_up_to_best(options.init)
        with epoch_progress(name, self.num_trees, options.report) as report_epoch:

            def score(scores: NDArray[np.float64], data: Any) -> tuple[str, float, bool]:
                key = next(key for key, valid_set in valid_sets.items() if valid_set is data)
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

            with self._lightgbm_errors(train):
                # Where earlier trees have to score the items first, LightGBM makes the bins itself.
                if earlier_trees is None:
                    make_bins(train_set, *valid_sets.values())
                self._booster = lightgbm.train(
                    parameters,
                    train_set,
                    self.num_trees,
                    valid_sets=list(valid_sets.values()) or None,
                    feval=score if valid_sets else None,
                    init_model=earlier_trees,
                    callbacks=[after_tree],
                )
        # A few rows in memory get equal scores, as LightGBM gives them; for files too big for memory that is a mistake in the settings.
        if train.is_on_disk and not self._booster.feature_importance("split").any():
            raise _no_feature_splits(train.num_items, self.min_items_in_leaf)
        self._note_curves(curves, measures, objective, earlier_trees)

    @contextmanager
    def _lightgbm_errors(self, train: RankingDataset) -> Iterator[None]:
        """Errors of LightGBM in our words, with the setting to change."""
        lightgbm = require("lightgbm", type(self).__name__)
        try:
            yield
        except RankPolicyError:
            raise
        except (lightgbm.basic.LightGBMError, ValueError) as error:
            if "num_features()" in str(error):
                raise _no_feature_splits(train.num_items, self.min_items_in_leaf) from None
            raise RankPolicyError(
                f"LightGBM refuses these settings: {str(error).split(' at /')[0]}. Change them on {self!r}."
            ) from None

    def _note_curves(
        self, curves: dict[str, list[float]], measures: dict[str, Any], objective: Any, earlier_trees: Any
    ) -> None:
        """Set what a fit leaves behind: the best number of trees, its score, and the curves."""
        # LightGBM itself notes no best number of trees without its own early stopping.
        num_earlier = 0 if earlier_trees is None else earlier_trees.current_iteration()
        decisive = curves.get(DECISIVE)
        self.best_iteration_ = self._booster.current_iteration() if decisive is None else num_earlier + _best(decisive)
        self.best_score_ = None if decisive is None else max(decisive)
        self.evals_result_ = {} if objective is None else {"training": objective.history}
        self.evals_result_ |= {key: {measures[key][0]: curve} for key, curve in curves.items()}

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
            **({"num_threads": 1} if this_thread.is_alone else {}),
        }

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        is_small = dataset.num_items * self.best_iteration_ < _ENOUGH_TREE_READS
        threads = {"num_threads": 1} if is_small or this_thread.is_alone else {}
        return np.concatenate(
            [
                self._booster.predict(as_matrix(block), num_iteration=self.best_iteration_, **threads)
                for block in dataset.feature_blocks()
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

        return add_trees(graph, self._checked_text())

    def _engine_model(self, names: Sequence[str]) -> Trees:
        from rankpolicy.rankers.exporting.engine_models import Trees

        return Trees.of(self._checked_text(), names)

    def _checked_text(self) -> str:
        return checked_model_text(self._files()[_TREES], num_features=self.num_features_)

    def _files(self) -> dict[str, bytes]:
        return {_TREES: self._booster.model_to_string(num_iteration=self.best_iteration_).encode()}

    def _restore(self, files: dict[str, bytes]) -> None:
        text = checked_model_text(files[_TREES], num_features=self.num_features_)
        self._booster = require("lightgbm", type(self).__name__).Booster(model_str=text)


def _no_feature_splits(num_items: int, min_items: int) -> RankPolicyError:
    return RankPolicyError(
        f"no feature splits the {num_items} items into leaves of min_items_in_leaf={min_items} items "
        "(n_samples=1 or n_features=1 may be too few). Lower min_items_in_leaf, or check the features."
    )


def _best(curve: list[float]) -> int:
    """The number, from 1, of the highest value; of equal ones the first."""
    return int(np.argmax(curve)) + 1


def _trees_up_to_best(init: Any) -> lightgbm.Booster:
    """The trees up to the best iteration of a fitted ranker, as a booster of its own."""
    text = init._booster.model_to_string(num_iteration=init.best_iteration_)
    booster: lightgbm.Booster = require("lightgbm", type(init).__name__).Booster(model_str=text)
    return booster
