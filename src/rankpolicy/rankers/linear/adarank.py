"""AdaRank: boosting on a reward of rankings, with single features as weak rankers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from rankpolicy.rankers.linear.reward_ascent import RewardAscent, RewardSurface, Weights
from rankpolicy.types import RankPolicyError

_NEARLY_ONE = 1 - 1e-9  # a weak ranker without a fault would get an infinite alpha


@final
@dataclass(kw_only=True, eq=False, repr=False)
class AdaRank(RewardAscent):
    """Boosting with a weight on every query (Xu & Li 2007); ``reward`` is any metric from -1 to 1.

    With E(q, h) the reward of ranking query q by h, and query weights P(q), equal at first, each round takes the feature h with the highest
    e = Σ_q P(q) E(q, h), adds alpha * h to the scores f, where alpha = ln((1 + e) / (1 - e)) / 2, and sets P(q) ∝ exp(-E(q, f)).

    A feature whose addition lowers the mean training reward by more than ``tolerance`` is taken back and not tried again, nor is one chosen
    ``max_repeats`` times in a row; training ends when no feature is left, or after ``rounds``. ``both_directions`` lets features
    count as weak rankers the other way round too.
    """

    name: ClassVar[str] = "adarank"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"both_directions": True},
        {"reward": "ndcg"},
        {"scaling": "query_minmax"},
        {"scaling": "query_minmax", "reward": "ndcg", "both_directions": True},
    )

    rounds: int = 500
    tolerance: float = 0.0
    max_repeats: int = 20
    both_directions: bool = False

    @property
    def _most_iterations(self) -> int:
        return self.rounds

    def _climb(self, surface: RewardSurface) -> Iterator[tuple[Weights, float]]:
        self._check_settings()
        num_features = len(surface.columns)
        signs = (1.0, -1.0) if self.both_directions else (1.0,)
        # (weak ranker, query): the features as they are, then the other way round.
        weak_rewards = np.array([surface.rewards(sign * column) for sign in signs for column in surface.columns])
        if np.abs(weak_rewards).max() > 1:
            raise RankPolicyError(
                f"AdaRank needs a reward from -1 to 1, such as 'map' or 'ndcg@10'; {surface.reward.name!r} reaches "
                f"{weak_rewards.flat[np.abs(weak_rewards).argmax()]:g}. CoordinateAscent takes any reward."
            )
        weights, scores = np.zeros(num_features), np.zeros(surface.dataset.num_items)
        query_weights = np.full(surface.dataset.num_queries, 1 / surface.dataset.num_queries)
        is_left = np.ones(len(weak_rewards), bool)
        training_reward, last_chosen, repeats = -np.inf, -1, 0
        for _ in range(self.rounds):
            if not is_left.any():
                return
            edges = weak_rewards @ query_weights
            chosen = int(np.where(is_left, edges, -np.inf).argmax())
            feature, sign = chosen % num_features, signs[chosen // num_features]
            alpha = sign * np.arctanh(np.clip(edges[chosen], -_NEARLY_ONE, _NEARLY_ONE))
            new_scores = scores + alpha * surface.columns[feature]
            new_rewards = surface.rewards(new_scores)
            if new_rewards.mean() < training_reward - self.tolerance:
                is_left[chosen] = False
                continue
            repeats = repeats + 1 if chosen == last_chosen else 1
            if repeats == self.max_repeats:
                is_left[chosen] = False
            last_chosen, training_reward, scores = chosen, float(new_rewards.mean()), new_scores
            weights[feature] += alpha
            query_weights = np.exp(-new_rewards)
            query_weights /= query_weights.sum()
            yield weights, training_reward

    def _check_settings(self) -> None:
        for name in ("rounds", "max_repeats"):
            if getattr(self, name) < 1:
                raise RankPolicyError(f"{name} must be at least 1; got {getattr(self, name)}.")
        if self.tolerance < 0:
            raise RankPolicyError(f"tolerance must be 0 or more; got {self.tolerance:g}.")
