"""LambdaMART: gradient-boosted trees on LambdaRank gradients, by LightGBM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.evaluation.evaluate import evaluate_scores
from rankpolicy.metrics import as_reward
from rankpolicy.optional import require
from rankpolicy.rankers.base import Ranker
from rankpolicy.training import epoch_progress
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import lightgbm


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LambdaMART(Ranker):
    """LambdaMART (Burges 2010) as LightGBM implements it; settings keep LightGBM's meaning under names that explain themselves."""

    name: ClassVar[str] = "lambdamart"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = tuple(
        {"num_leaves": leaves, "min_items_in_leaf": items} for leaves in (15, 7, 31) for items in (50, 20, 100)
    )

    num_trees: int = 1000
    learning_rate: float = 0.05
    num_leaves: int = 15
    min_items_in_leaf: int = 50
    feature_fraction: float = 0.8
    bagging_fraction: float = 0.8
    l2: float = 0.0
    truncation: int = 30  # pairs count when one of the two is among the first so many
    patience: int | None = 50
    valid_metric: Any = "ndcg@10"
    random_state: int = 0

    def _fit(
        self,
        train: RankingDataset,
        valid: RankingDataset | None,
        *,
        progress: bool | None,
        checkpoint: Path | None,
        resume: bool,
    ) -> None:
        if checkpoint is not None:
            raise RankPolicyError("LambdaMART keeps no checkpoints: it trains in seconds. Leave checkpoint out.")
        lightgbm = require("lightgbm", "LambdaMART")
        parameters = self._parameters()
        train_set = _lightgbm_data(train, parameters)
        metric = as_reward(self.valid_metric)
        history: dict[str, list[float]] = {metric.name: []}
        with epoch_progress("LambdaMART", self.num_trees, enabled=progress) as report_epoch:

            def score(scores: NDArray[np.float64], data: Any) -> tuple[str, float, bool]:
                assert valid is not None
                history[metric.name].append(float(np.nanmean(evaluate_scores(scores, valid, [metric]))))
                if report_epoch is not None:
                    report_epoch(len(history[metric.name]), history)
                return metric.name, history[metric.name][-1], True

            callbacks = []
            if valid is not None and self.patience is not None:
                callbacks.append(lightgbm.early_stopping(self.patience, verbose=False))
            try:
                self._booster = lightgbm.train(
                    parameters,
                    train_set,
                    self.num_trees,
                    valid_sets=None if valid is None else [_lightgbm_data(valid, parameters, reference=train_set)],
                    feval=None if valid is None else score,
                    callbacks=callbacks,
                )
            except (lightgbm.basic.LightGBMError, ValueError) as error:
                if isinstance(error, RankPolicyError):
                    raise
                raise RankPolicyError(
                    f"LightGBM refuses these settings: {str(error).split(' at /')[0]}. Change them on {self!r}."
                ) from None
        self.best_iteration_ = self._booster.best_iteration if self._booster.best_iteration > 0 else self.num_trees
        self.best_score_ = None if valid is None else history[metric.name][self.best_iteration_ - 1]
        self.evals_result_ = {} if valid is None else {"valid_0": history}

    def _parameters(self) -> dict[str, Any]:
        return {
            "objective": "lambdarank",
            "metric": "none",
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_items_in_leaf,
            "feature_fraction": self.feature_fraction,
            "bagging_fraction": self.bagging_fraction,
            "bagging_freq": 1,
            "lambda_l2": self.l2,
            "lambdarank_truncation_level": self.truncation,
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        return np.asarray(self._booster.predict(dataset.features, num_iteration=self.best_iteration_))

    def _files(self) -> dict[str, bytes]:
        return {"booster.txt": self._booster.model_to_string(num_iteration=self.best_iteration_).encode()}

    def _restore(self, files: dict[str, bytes]) -> None:
        self._booster = require("lightgbm", "LambdaMART").Booster(model_str=files["booster.txt"].decode())


def _lightgbm_data(dataset: RankingDataset, parameters: dict[str, Any], *, reference: Any = None) -> lightgbm.Dataset:
    fractional = dataset.labels != np.round(dataset.labels)
    if fractional.any() or dataset.labels.max() > 30:
        raise RankPolicyError(
            "LambdaMART needs whole-number labels from 0 to 30; "
            f"got {dataset.labels[fractional][0] if fractional.any() else dataset.labels.max():g}. Map grades to 0, 1, 2, ..."
        )
    return require("lightgbm", "LambdaMART").Dataset(
        dataset.features,
        dataset.labels,
        group=dataset.sizes,
        reference=reference,
        params=parameters,
        free_raw_data=False,
    )
