"""Saved rankers, served: items sorted by their scores, or drawn from the policy of the ranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.settings import ReadWhen, check_settings, setting, settings_class
from rankpolicy.loading import load
from rankpolicy.service.domain.messages import MOST_FEATURES, Item, RankRequest
from rankpolicy.service.domain.records import Ordered
from rankpolicy.service.policies.model_inputs import ModelInputs
from rankpolicy.service.policies.served_policy import ServedPolicy, ShownLists, Steps, steps_of_order
from rankpolicy.types import RankPolicyError

_LARGEST = 1e300  # scores beyond it are cut, so that differences of scores stay finite
_AT_ONCE = 2_000  # requests that are scored together
_IS_SAMPLED = ReadWhen(condition="order_by is 'sampled'", holds=lambda policy: policy.order_by == "sampled")


@settings_class
class RankerPolicy(ServedPolicy):
    """A ranker that ``save`` wrote to a file: of features, of texts, or of groups. It learns nothing while it is served."""

    kind: ClassVar[str] = "ranker"
    is_quick = False

    model: str = setting(MISSING, "The file of the ranker.")
    order_by: str = setting(
        "sorted",
        "'sorted': by descending score, equal scores in the order of the request. 'sampled': drawn from the policy of the ranker, which "
        "has exact propensities: Plackett-Luce over the scores, which explores, or the mixture of rankings of a fair ranker.",
        choices=("sorted", "sampled"),
    )
    temperature: float = setting(
        1.0, "Scores are divided by it. Larger values explore more.", at_least=1e-3, at_most=1e6, read_when=_IS_SAMPLED
    )

    def __post_init__(self) -> None:
        check_settings(self)
        self._ranker = load(self.model)
        self._sha256 = sha256(Path(self.model).read_bytes()).hexdigest()
        self._is_mixture = self._checked_ranker()
        self._inputs = ModelInputs(self._ranker)

    @property
    def reads_texts(self) -> bool:
        """Whether items need a text."""
        return bool(self._ranker._reads_texts)

    @property
    def model_sha256(self) -> str | None:
        return self._sha256

    def warm_up(self) -> None:
        """Score two items as of a request, so that what cannot be served fails now and libraries are loaded; changes nothing."""
        if self._ranker.num_features_ and not self._is_mixture:
            items = [Item(id=name, features=[None] * self._ranker.num_features_) for name in "ab"]
            self._scores([RankRequest(query="q", items=items)])

    def model_content(self) -> bytes | None:
        """The file, if it is still what was loaded."""
        content = Path(self.model).read_bytes()
        if sha256(content).hexdigest() != self._sha256:
            raise RankPolicyError(f"{self.model} was replaced while the service started. Start it again.")
        return content

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The list to show."""
        if not request.items:
            return Ordered(items=[], scores=[], propensities=[])
        if self._is_mixture and self.order_by == "sampled":
            return self._drawn_from_mixture(request, generator)
        scores = self._scores([request])[0]
        if self.order_by == "sorted":
            indices = np.argsort(-scores, kind="stable")[: request.cutoff]
            propensities = [1.0] * len(indices)
        else:
            log_weights = self._log_weights(scores)
            indices = np.argsort(-(log_weights + generator.gumbel(size=len(scores))), kind="stable")[: request.cutoff]
            propensities = np.exp(log_propensities(log_weights, indices)).tolist()
        return Ordered(
            items=[request.items[index].id for index in indices],
            scores=scores[indices].tolist(),
            propensities=propensities,
        )

    def step_probabilities(self, requests: Sequence[RankRequest], lists: ShownLists) -> Steps | None:
        """The probability of each item of lists given those above it."""
        steps: list[list[float]] = []
        for start in range(0, len(requests), _AT_ONCE):
            block = requests[start : start + _AT_ONCE]
            steps += self._steps(block, lists[start : start + _AT_ONCE])
        return steps

    def _steps(self, requests: Sequence[RankRequest], lists: Sequence[Sequence[str]]) -> list[list[float]]:
        indices = []
        for request, shown in zip(requests, lists, strict=True):
            place_of = {item.id: index for index, item in enumerate(request.items)}
            indices.append(np.array([place_of[name] for name in shown], np.int64))
        if self._is_mixture and self.order_by == "sampled":
            rankings, weights = self._mixture(requests)
            return [
                _mixture_steps(rankings[:, row], weights[:, row], shown_indices)
                for row, shown_indices in enumerate(indices)
            ]
        scores = self._scores(requests)
        if self.order_by == "sampled":
            return [
                np.exp(log_propensities(self._log_weights(request_scores), shown_indices)).tolist()
                for request_scores, shown_indices in zip(scores, indices, strict=True)
            ]
        orders = [np.argsort(-request_scores, kind="stable").tolist() for request_scores in scores]
        return [
            steps_of_order(order, shown_indices.tolist()) for order, shown_indices in zip(orders, indices, strict=True)
        ]

    def _drawn_from_mixture(self, request: RankRequest, generator: np.random.Generator) -> Ordered:
        rankings, weights = self._mixture([request])
        chosen = rankings[generator.choice(len(weights), p=weights[:, 0] / weights[:, 0].sum()), 0]
        indices = chosen[: min(request.cutoff, len(request.items))]
        return Ordered(
            items=[request.items[index].id for index in indices],
            propensities=_mixture_steps(rankings[:, 0], weights[:, 0], indices),
        )

    def _mixture(self, requests: Sequence[RankRequest]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rankings (ranking, request, position) and their probabilities (ranking, request)."""
        policy = self._inputs.given_to("policy", requests)
        return policy.rankings, policy.weights

    def _scores(self, requests: Sequence[RankRequest]) -> list[NDArray[np.float64]]:
        scores = np.asarray(self._inputs.given_to("predict", requests), np.float64)
        if not np.isfinite(scores).all():
            raise RankPolicyError(
                "features must lead to finite scores; these do not. Are they on the scale of the training data?"
            )
        return np.split(scores, np.cumsum([len(request.items) for request in requests])[:-1])

    def _log_weights(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithms of the weights of the Plackett-Luce policy."""
        return np.clip(scores / self.temperature, -_LARGEST, _LARGEST)

    def _checked_ranker(self) -> bool:
        """Whether the policy of the ranker is a mixture of rankings; refuses what cannot be served."""
        from rankpolicy.rankers.base import Ranker

        ranker = self._ranker
        if not isinstance(ranker, Ranker):
            raise RankPolicyError(f"{self.model} must be a ranker; it is a {type(ranker).__name__}.")
        is_mixture = not ranker.ranks_by_sorting and type(ranker)._policy_of is not Ranker._policy_of
        what = f"{self.model}, a {type(ranker).__name__},"
        if ranker.num_features_ > MOST_FEATURES:
            raise RankPolicyError(
                f"{what} reads {ranker.num_features_} features; items of a request have at most {MOST_FEATURES}."
            )
        if self.order_by == "sampled" and not is_mixture and type(ranker)._policy_of is not Ranker._policy_of:
            raise RankPolicyError(f"{what} has no Plackett-Luce policy: serve it with order_by = 'sorted'.")
        if is_mixture and self.temperature != 1:
            raise RankPolicyError(f"{what} draws from a mixture of rankings, which has no temperature: leave it out.")
        return is_mixture


def log_propensities(log_weights: NDArray[np.float64], indices: NDArray[Any]) -> NDArray[np.float64]:
    """Logarithm of the Plackett-Luce probability of each placed item given those above it.

    log P(position p) = s_{r(p)} - log sum_{j not placed above p} exp(s_j)

    >>> np.exp(log_propensities(np.log([3.0, 2.0, 1.0]), np.array([0, 1]))).round(6)  # 3/6, then 2/3
    array([0.5     , 0.666667])
    """
    placed = log_weights[indices]
    never = np.delete(log_weights, indices)
    log_unplaced = np.logaddexp.reduce(never) if len(never) else -np.inf
    remaining = np.logaddexp.accumulate(np.concatenate([[log_unplaced], placed[::-1]]))[1:][::-1]
    log_steps: NDArray[np.float64] = placed - remaining
    return log_steps


def _mixture_steps(
    rankings: NDArray[np.int64], weights: NDArray[np.float64], indices: NDArray[np.int64]
) -> list[float]:
    """The probability of each placed item given those above it, under a mixture of rankings (ranking, position).

    >>> _mixture_steps(np.array([[0, 1], [1, 0]]), np.array([0.75, 0.25]), np.array([1, 0]))
    [0.25, 1.0]
    """
    steps, reaching = [], weights / weights.sum()
    for position, item in enumerate(indices):
        above = reaching.sum()
        reaching = reaching * (rankings[:, position] == item)
        steps.append(min(1.0, float(reaching.sum() / above)) if above > 0 else 0.0)
    return steps
