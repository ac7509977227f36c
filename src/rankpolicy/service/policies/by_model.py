"""Saved rankers, served: items sorted by their scores, or drawn from the Plackett-Luce policy over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankpolicy.loading import load
from rankpolicy.service.messages import Item, RankRequest
from rankpolicy.service.policies.served_policy import Ordered, Unlearning
from rankpolicy.settings import ReadWhen, check_settings, documented, setting
from rankpolicy.types import RankPolicyError

_LARGEST = 1e300  # scores beyond it are cut, so that differences of scores stay finite
_IS_SAMPLED = ReadWhen(condition="order is 'sampled'", holds=lambda policy: policy.order_by == "sampled")


@documented
@dataclass(kw_only=True, eq=False)
class RankerPolicy(Unlearning):
    """A ranker of features that ``save`` wrote to a file. It learns nothing while it is served."""

    kind: ClassVar[str] = "ranker"
    is_quick: ClassVar[bool] = False

    model: str = setting(MISSING, "The file of the ranker.")
    order_by: str = setting(
        "sorted",
        "'sorted': by descending score, equal scores in the order of the request. 'sampled': drawn from the Plackett-Luce policy over "
        "the scores, which explores and has exact propensities.",
        choices=("sorted", "sampled"),
    )
    temperature: float = setting(
        1.0, "Scores are divided by it. Larger values explore more.", at_least=1e-3, at_most=1e6, read_when=_IS_SAMPLED
    )

    def __post_init__(self) -> None:
        check_settings(self)
        self._ranker = load(self.model)
        self._sha256 = sha256(Path(self.model).read_bytes()).hexdigest()
        self._check_ranker()

    @property
    def model_sha256(self) -> str | None:
        return self._sha256

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The list to show.

        Parameters
        ----------
        request
            Items with features.
        generator
            Source of randomness.
        """
        if not request.items:
            return Ordered(items=[], scores=[], propensities=[])
        features = self._features(request.items)
        scores = np.asarray(self._ranker.predict(features, group=[len(features)]), np.float64)
        if not np.isfinite(scores).all():
            raise RankPolicyError(
                "features must lead to finite scores; these do not. Are they on the scale of the training data?"
            )
        if self.order_by == "sorted":
            places = np.argsort(-scores, kind="stable")[: request.cutoff]
            propensities = [1.0] * len(places)
        else:
            log_weights = np.clip(scores / self.temperature, -_LARGEST, _LARGEST)
            places = np.argsort(-(log_weights + generator.gumbel(size=len(scores))), kind="stable")[: request.cutoff]
            propensities = np.exp(log_propensities(log_weights, places)).tolist()
        return Ordered(
            items=[request.items[place].id for place in places],
            scores=scores[places].tolist(),
            propensities=propensities,
        )

    def warm_up(self) -> None:
        """Score two items, so that the first user does not wait a second for libraries to load; changes nothing."""
        self._ranker.predict(np.zeros((2, self._ranker.num_features_)), group=[2])

    def _check_ranker(self) -> None:
        from rankpolicy.rankers.base import Ranker

        ranker = self._ranker
        if not isinstance(ranker, Ranker):
            raise RankPolicyError(f"{self.model} must be a ranker; it is a {type(ranker).__name__}.")
        what = f"{self.model}, a {type(ranker).__name__},"
        if ranker._reads_texts or ranker.categories_:
            raise RankPolicyError(f"{what} cannot be served yet: only rankers of numeric features can.")
        if type(ranker)._policy_of is not Ranker._policy_of:
            if not ranker.ranks_by_sorting:
                raise RankPolicyError(
                    f"{what} cannot be served yet: its rankings depend on groups, not on scores alone."
                )
            if self.order_by == "sampled":
                raise RankPolicyError(f"{what} has no Plackett-Luce policy: serve it with order_by = 'sorted'.")

    def _features(self, items: Sequence[Item]) -> NDArray[np.float64]:
        return np.array([self._row(item) for item in items], np.float64)

    def _row(self, item: Item) -> list[float]:
        names, size = self._ranker.feature_names_, self._ranker.num_features_
        given = item.features
        if isinstance(given, dict):
            if names is None:
                raise RankPolicyError(f"features of this model have no names: send lists of {size} numbers.")
            missing = [name for name in names if name not in given]
            if missing:
                raise RankPolicyError(f"item {item.id!r:.80} must have the feature {missing[0]!r:.80}.")
            return [given[name] for name in names]
        if given is None or len(given) != size:
            came = "none" if given is None else str(len(given))
            raise RankPolicyError(f"item {item.id!r:.80} must have {size} features; it has {came}.")
        return given


def log_propensities(log_weights: NDArray[np.float64], places: NDArray[Any]) -> NDArray[np.float64]:
    """Logarithm of the Plackett-Luce probability of each placed item given those above it.

    log P(position p) = s_{r(p)} - log sum_{j not placed above p} exp(s_j)

    Parameters
    ----------
    log_weights
        Logarithms of the weights (item,).
    places
        The items that were placed, first position first.

    >>> np.exp(log_propensities(np.log([3.0, 2.0, 1.0]), np.array([0, 1]))).round(6)  # 3/6, then 2/3
    array([0.5     , 0.666667])
    """
    placed = log_weights[places]
    never = np.delete(log_weights, places)
    rest = np.logaddexp.reduce(never) if len(never) else -np.inf
    remaining = np.logaddexp.accumulate(np.concatenate([[rest], placed[::-1]]))[1:][::-1]
    found: NDArray[np.float64] = placed - remaining
    return found
