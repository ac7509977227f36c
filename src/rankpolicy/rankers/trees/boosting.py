"""The base of rankers whose scores come from gradient-boosted trees, grown by LightGBM; subclasses supply the objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.optional import require
from rankpolicy.rankers.base import FitOptions, Ranker
from rankpolicy.rankers.trees.model_text import checked_model_text
from rankpolicy.settings import setting
from rankpolicy.training import epoch_progress
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import lightgbm

_TREES = "booster.txt"

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
        15, "Leaves per tree. More leaves fit finer structure and overfit small data.", at_least=2
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
    random_state: int = setting(0, "Seed of the random choice of features and items.")

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
        lightgbm = require("lightgbm", name)
        train = self._trainable(train)
        parameters, objective = self._parameters(), self._objective(train)
        metric, measure = ("", None) if valid is None else self._validation(valid)
        train_set = self._lightgbm_data(train)
        valid_sets = None if valid is None else [self._lightgbm_data(valid, reference=train_set)]
        if objective is not None:
            # A function rather than the object: LightGBM deep-copies its parameters.
            parameters["objective"] = lambda scores, data: objective(scores)
        history: list[float] = []
        with epoch_progress(name, self.num_trees, enabled=options.progress) as report_epoch:

            def score(scores: NDArray[np.float64], data: Any) -> tuple[str, float, bool]:
                assert measure is not None
                history.append(measure(scores))
                if report_epoch is not None:
                    report_epoch(len(history), {metric: history[-1]})
                return metric, history[-1], True

            callbacks = []
            if valid is not None and self.patience is not None:
                callbacks.append(lightgbm.early_stopping(self.patience, verbose=False))
            try:
                self._booster = lightgbm.train(
                    parameters,
                    train_set,
                    self.num_trees,
                    valid_sets=valid_sets,
                    feval=None if valid is None else score,
                    callbacks=callbacks,
                )
            except (lightgbm.basic.LightGBMError, ValueError) as error:
                if isinstance(error, RankPolicyError):
                    raise
                raise RankPolicyError(
                    f"LightGBM refuses these settings: {str(error).split(' at /')[0]}. Change them on {self!r}."
                ) from None
        # Counted here because LightGBM keeps no best iteration without early stopping.
        self.best_iteration_ = self.num_trees if valid is None else int(np.argmax(history)) + 1
        self.best_score_ = None if valid is None else history[self.best_iteration_ - 1]
        self.evals_result_ = {} if objective is None else {"training": objective.history}
        if valid is not None:
            self.evals_result_["valid_0"] = {metric: history}

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
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }

    def _lightgbm_data(self, dataset: RankingDataset, *, reference: Any = None) -> lightgbm.Dataset:
        data: lightgbm.Dataset = require("lightgbm", type(self).__name__).Dataset(
            dataset.features,
            dataset.labels,
            group=dataset.sizes,
            reference=reference,
            params=self._parameters(),
            categorical_feature=[(dataset.feature_names or ()).index(name) for name in dataset.categories or ()],
            free_raw_data=False,
        )
        return data

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        return np.asarray(self._booster.predict(dataset.features, num_iteration=self.best_iteration_))

    def _files(self) -> dict[str, bytes]:
        return {_TREES: self._booster.model_to_string(num_iteration=self.best_iteration_).encode()}

    def _restore(self, files: dict[str, bytes]) -> None:
        text = checked_model_text(files[_TREES], num_features=self.num_features_)
        self._booster = require("lightgbm", type(self).__name__).Booster(model_str=text)
