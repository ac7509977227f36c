"""Fair exposure by post-processing: estimate relevance first, then solve one linear program per query to rank."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import ReadWhen, seed_setting, setting, settings_class
from rankpolicy.declarations.values import settings_from
from rankpolicy.fairness import (
    MERITS,
    FairRanking,
    constrained_ranking,
    merit_of,
    mixture_of,
    penalized_ranking,
)
from rankpolicy.policies.mixture import Mixture
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.fits import DECISIVE, FitOptions
from rankpolicy.rankers.post_processing.fair_ranker import (
    FairRanker,
    groups_of,
    ndcg_values,
    new_estimator,
    relevance_estimators,
    rows_by_query,
)
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.exporting.graph import Graph

_STATE = "relevance.json"


@final
@settings_class
class FairLP(FairRanker):
    """Estimate relevance, then find the best fair mixture of rankings by linear programming (Singh & Joachims 2018; 2019, appendix B.3).

    The mixture of each query maximises

    NDCG - strength * group disparity of exposure,    both computed from the estimates r̂ in place of labels,

    and is made of rankings by the decomposition of Birkhoff and von Neumann. ``max_disparity`` bounds the disparity of every query
    instead.

    r̂ = a * score + b with the a, b that fit the labels of the training data best, so scores on any scale will do. The gain of an item may
    be negative, its merit not: an estimate below 0 has merit 0.

    Ranking needs the protected group of every item, from ``dataset.groups`` or ``protected=``. ``predict`` returns the expected exposure
    of an item in its query, so ``rank`` puts the most exposed item first. Validation data is used by the estimator of relevance, and the
    validation score measures that estimator.
    """

    name: ClassVar[str] = "fair-lp"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"relevance_settings": {"model": "mlp"}})

    strength: float = setting(
        1.0,
        "Weight of the disparity against NDCG; 0 ignores fairness, higher values are fairer.",
        at_least=0,
        read_when=ReadWhen(condition="max_disparity is None", holds=lambda ranker: ranker.max_disparity is None),
    )
    max_disparity: float | None = setting(
        None, "Bound on the disparity of every query, in place of a strength; None has no bound.", at_least=0
    )
    relevance: str = setting(
        "regression", "The ranker that estimates relevance, by its method name.", choices=relevance_estimators
    )
    relevance_settings: Mapping[str, Any] | str | None = setting(
        None,
        "Settings of that ranker, a dict (or its text) such as {'model': 'mlp'}; None takes its defaults. "
        "A regression is linear on standardised features unless these say otherwise.",
    )
    gain: str = setting(
        "exp2",
        "Gain of an estimate in NDCG: 2^r̂ - 1 or r̂ itself, as in Conventions.",
        choices=("exp2", "linear"),
    )
    merit: str = setting("identity", "Merit of an item, as a function of its estimate.", choices=MERITS)
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
        if not isinstance(init, FairLP):
            raise RankPolicyError(
                f"init must be a fitted FairLP, whose estimator of relevance is trained further; got {type(init).__name__}."
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

    def _policy_of(self, dataset: RankingDataset) -> Mixture:
        groups = groups_of(dataset, "FairLP ranks by")
        padding = dataset.padding().to("cpu")
        estimates = padding.pad(torch.from_numpy(self._relevances(dataset)))
        padded = ndcg_values(estimates, padding.mask, self.gain), merit_of(estimates.clamp(min=0), self.merit)
        values, merits = (padding.unpad(of_items).numpy() for of_items in padded)
        fair = [self._fair(values[rows], groups[rows], merits[rows]) for rows in rows_by_query(dataset)]
        return mixture_of([ranking.probabilities for ranking in fair], dtype=torch.float64)

    def _fair(self, values: NDArray[np.float64], groups: NDArray[Any], merit: NDArray[np.float64]) -> FairRanking:
        """The linear program of one query."""
        if self.max_disparity is None:
            return penalized_ranking(values, groups, strength=self.strength, merit=merit)
        return constrained_ranking(values, groups, max_disparity=self.max_disparity, merit=merit)

    def _onnx_scores(self, graph: Graph) -> str:
        raise RankPolicyError(
            "FairLP cannot be exported to ONNX: the score of an item comes from a linear program over all items of its query and their "
            f"protected groups. Use save(path); or fit and export the ranker that estimates relevance ({self.relevance!r}) by itself."
        )

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
