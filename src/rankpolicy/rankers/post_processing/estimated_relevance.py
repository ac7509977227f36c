"""What rankers share that make a policy from the relevances that one other ranker estimates."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import seed_setting, setting, settings_class
from rankpolicy.declarations.values import settings_from
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.fits import DECISIVE, FitOptions
from rankpolicy.rankers.post_processing.fair_ranker import FairRanker, new_estimator, relevance_estimators
from rankpolicy.types import RankPolicyError

_STATE = "relevance.json"


@settings_class
class EstimatedRelevance(FairRanker):
    """A fair ranker with one estimator of relevance, whose scores are put on the scale of labels by least squares."""

    relevance: str = setting(
        "regression", "The ranker that estimates relevance, by its method name.", choices=relevance_estimators
    )
    relevance_settings: Mapping[str, Any] | str | None = setting(
        None,
        "Settings of that ranker, a dict (or its text) such as {'model': 'mlp'}; None takes its defaults. "
        "A regression is linear on standardised features unless these say otherwise.",
    )
    random_state: int | None = seed_setting(
        0, "Seed of the ranker that estimates relevance, unless its settings have one. None draws a new one each time."
    )

    def _check_settings(self) -> None:
        super()._check_settings()
        self._new_estimator()

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        self._estimator = self._new_estimator().fit(
            train,
            valid=valid,
            init=None if options.init is None else options.init._estimator,  # type: ignore[attr-defined]
            callbacks=options.report.callbacks,
            verbose=options.report.every,
            progress=options.report.progress,
            checkpoint=options.checkpoint,
            resume=options.resume,
        )
        self._line = _least_squares_line(self._estimator._scores(train), train.labels_by_query.astype(np.float64))
        self.best_iteration_, self.best_score_ = self._estimator.best_iteration_, self._estimator.best_score_
        self.evals_result_ = {
            DECISIVE if data == "valid_0" else data: {f"relevance {metric}": curve for metric, curve in curves.items()}
            for data, curves in self._estimator.evals_result_.items()
        }

    def _check_init(self, init: Any, train: RankingDataset) -> None:
        if type(init) is not type(self):
            raise RankPolicyError(
                f"init must be a fitted {type(self).__name__}, whose estimator of relevance is trained further; got {type(init).__name__}."
            )
        init._require_fitted()
        self._new_estimator()._check_init(init._estimator, train)

    def _new_estimator(self) -> Ranker:
        """The unfitted estimator of relevance; refuses settings that it does not have or would not read."""
        settings = settings_from(self.relevance_settings, name="relevance_settings", example="{'model': 'mlp'}")
        return new_estimator(self.relevance, settings, random_state=self.random_state)

    def _relevances(self, dataset: RankingDataset) -> NDArray[np.float64]:
        slope, intercept = self._line
        return slope * self._estimator._scores(dataset) + intercept

    def _files(self) -> dict[str, bytes]:
        fitted = {name: getattr(self._estimator, name) for name in self._estimator.fitted_attributes}
        return {**self._estimator._files(), _STATE: json.dumps({"line": self._line, "fitted": fitted}).encode()}

    def _restore(self, files: dict[str, bytes]) -> None:
        state = json.loads(files[_STATE])
        slope, intercept = map(float, state["line"])
        if not math.isfinite(slope + intercept):
            raise RankPolicyError("the line from scores to relevances must be finite. Copy or train the model again.")
        self._line, self._estimator = (slope, intercept), self._new_estimator()
        estimator_files = {name: content for name, content in files.items() if name != _STATE}
        self._estimator._restore_fitted(state["fitted"], estimator_files)


def _least_squares_line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and intercept; the slope is at least 0, since a negative one would reverse the order of the scores.

    >>> _least_squares_line(np.array([1.0, 2.0, 3.0]), np.array([3.0, 5.0, 7.0]))
    (2.0, 1.0)
    """
    spread = x - x.mean()
    slope = max(0.0, float(spread @ y) / max(float(spread @ spread), np.finfo(np.float64).tiny))
    return slope, float(y.mean()) - slope * float(x.mean())
