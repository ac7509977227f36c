"""Fair exposure as an afterthought: estimate relevance first, then solve a linear program for each query that is ranked."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.fairness import (
    FairRanking,
    constrained_ranking,
    merit_of,
    mixture_of,
    penalized_ranking,
    position_bias,
)
from rankpolicy.metrics.additive import additive_form
from rankpolicy.policies.mixture import Mixture
from rankpolicy.rankers.base import FitOptions, Ranker
from rankpolicy.rankers.members import ranker_class_named
from rankpolicy.types import Conventions, RankPolicyError

# A regression line is the best simple estimate: its solution is exact, and nothing about it needs tuning.
_DEFAULTS: dict[str, dict[str, Any]] = {"regression": {"model": "linear", "scaling": "standardize"}}
_STATE = "relevance.json"


@final
@dataclass(kw_only=True, eq=False, repr=False)
class FairLP(Ranker):
    """Estimate relevance, then give each query the mixture of rankings (Singh & Joachims 2018; 2019, appendix B.3) that maximises

    NDCG - strength * group disparity of exposure,    both computed from the estimates r̂ in place of labels,

    by linear programming and the decomposition of Birkhoff and von Neumann. ``max_disparity`` bounds the disparity of every query instead.

    ``relevance`` names the ranker that makes the estimates, ``relevance_settings`` (a dict) its settings; a regression is linear on
    standardised features unless these say otherwise. r̂ = a * score + b with the a, b that fit the labels of the training data best, so
    that scores on any scale will do. An item's gain may fall below 0, its merit not: estimates below 0 merit 0.

    Items can only be ranked with their protected groups, by ``dataset.groups`` or ``protected=``. ``predict`` gives the expected
    exposure of
    an item in its query, so ``rank`` puts first what the policy shows most. Validation data serve the estimate of relevance, which the
    validation score measures.
    """

    name: ClassVar[str] = "fair-lp"
    ranks_by_sorting: ClassVar[bool] = False
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"relevance_settings": {"model": "mlp"}})

    strength: float = 1.0
    max_disparity: float | None = None
    relevance: str = "regression"
    relevance_settings: Any = None
    gain: str = "exp2"  # of an estimate, as in Conventions
    merit: str = "identity"
    random_state: int = 0

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        if self.strength < 0 or (self.max_disparity is not None and self.max_disparity < 0):
            raise RankPolicyError(
                f"strength and max_disparity must be 0 or more; got {self.strength}, {self.max_disparity}."
            )
        Conventions(gain=self.gain)  # type: ignore[arg-type]  # refuses what it does not know
        merit_of(torch.zeros(1, 1), self.merit)
        self._estimator = self._new_estimator().fit(
            train, valid=valid, progress=options.progress, checkpoint=options.checkpoint, resume=options.resume
        )
        self._line = _least_squares_line(self._estimator.predict(train), train.labels.astype(np.float64))
        self.best_iteration_, self.best_score_ = self._estimator.best_iteration_, self._estimator.best_score_
        self.evals_result_ = {
            data: {f"relevance {metric}": curve for metric, curve in curves.items()}
            for data, curves in self._estimator.evals_result_.items()
        }

    def _new_estimator(self) -> Ranker:
        ranker_class = ranker_class_named(self.relevance)
        if ranker_class is FairLP:
            raise RankPolicyError("relevance must name a ranker that makes scores; got 'fair-lp' itself.")
        settings = {"random_state": self.random_state, **_DEFAULTS.get(self.relevance, {})}
        return ranker_class().set_params(**settings | _as_settings(self.relevance_settings))

    def _relevances(self, dataset: RankingDataset) -> NDArray[np.float64]:
        slope, intercept = self._line
        return slope * self._estimator.predict(dataset) + intercept

    def _policy_of(self, dataset: RankingDataset) -> Mixture:
        if dataset.groups is None:
            raise RankPolicyError(
                "FairLP ranks by the protected group of every item: pass protected= (a value per row), or a dataset with a group column."
            )
        padding = dataset.padding()
        estimates = padding.pad(torch.from_numpy(self._relevances(dataset)))
        form = additive_form("ndcg", estimates, padding.mask, conventions=Conventions(gain=self.gain))  # type: ignore[arg-type]
        assert form is not None
        values, merits = (
            padding.unpad(padded).numpy() for padded in (form.item_values, merit_of(estimates.clamp(min=0), self.merit))
        )
        rows = (slice(start, stop) for start, stop in zip(dataset.offsets[:-1], dataset.offsets[1:], strict=True))
        fair = [self._fair(values[query], dataset.groups[query], merits[query]) for query in rows]
        return mixture_of([ranking.probabilities for ranking in fair], dtype=torch.float64)

    def _fair(self, values: NDArray[np.float64], groups: NDArray[Any], merit: NDArray[np.float64]) -> FairRanking:
        """The linear program of one query."""
        if self.max_disparity is None:
            return penalized_ranking(values, groups, strength=self.strength, merit=merit)
        return constrained_ranking(values, groups, max_disparity=self.max_disparity, merit=merit)

    def _scores(self, dataset: RankingDataset) -> NDArray[np.float64]:
        bias = position_bias(int(dataset.sizes.max()), dtype=torch.float64)
        return dataset.padding().unpad(self._policy_of(dataset).exposure(bias)).numpy()

    @property
    def _needs_queries(self) -> bool:
        return True

    def _files(self) -> dict[str, bytes]:
        fitted = {name: getattr(self._estimator, name) for name in self._estimator.fitted_attributes}
        return {**self._estimator._files(), _STATE: json.dumps({"line": self._line, "fitted": fitted}).encode()}

    def _restore(self, files: dict[str, bytes]) -> None:
        state = json.loads(files[_STATE])
        self._line, self._estimator = tuple(state["line"]), self._new_estimator()
        for name, value in state["fitted"].items():
            setattr(self._estimator, name, value)
        self._estimator._restore({name: content for name, content in files.items() if name != _STATE})


def _as_settings(given: Any) -> dict[str, Any]:
    """A dict of settings, or the text of one, as the command line has it."""
    try:
        settings = ast.literal_eval(given) if isinstance(given, str) else given
    except (ValueError, SyntaxError):
        settings = given
    if settings is None or isinstance(settings, Mapping):
        return dict(settings or {})
    raise RankPolicyError(f"relevance_settings must be a dict such as {{'model': 'mlp'}}; got {given!r:.80}.")


def _least_squares_line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and intercept; a slope below 0 would turn the order around, so that scores of no use give the mean of y.

    >>> _least_squares_line(np.array([1.0, 2.0, 3.0]), np.array([3.0, 5.0, 7.0]))
    (2.0, 1.0)
    """
    spread = x - x.mean()
    slope = max(0.0, float(spread @ y) / max(float(spread @ spread), np.finfo(np.float64).tiny))
    return slope, float(y.mean()) - slope * float(x.mean())
