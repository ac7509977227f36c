"""AdaRank: boosting that optimises a metric of rankings, with single features as weak rankers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, final

import numpy as np

from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.rankers.linear.reward_ascent import RewardAscent, RewardSurface, Weights
from rankpolicy.types import RankPolicyError

_NEARLY_ONE = 1 - 1e-9  # a perfect weak ranker would otherwise get an infinite alpha


@final
@settings_class
class AdaRank(RewardAscent):
    """Boosting with a weight on every query (Xu & Li 2007); the reward must lie between -1 and 1.

    Let E(q, h) be the reward of ranking query q by h, and P(q) the query weights, equal at first. Each round chooses the feature h with the
    highest e = Σ_q P(q) E(q, h), adds alpha * h to the scores f with alpha = ln((1 + e) / (1 - e)) / 2, and sets P(q) ∝ exp(-E(q, f)),
    times the weight of the query where ``sample_weight`` gives one.

    A feature is discarded when adding it lowers the mean training reward by more than ``tolerance`` (the addition is undone), or when it
    was chosen ``max_repeats`` times in a row. Training ends when no feature is left or after ``rounds``.
    """

    name: ClassVar[str] = "adarank"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"both_directions": True},
        {"reward": "ndcg"},
        {"scaling": "query_minmax"},
        {"scaling": "query_minmax", "reward": "ndcg", "both_directions": True},
    )

    rounds: int = setting(500, "Rounds of boosting at most, including those whose addition is undone.", at_least=1)
    tolerance: float = setting(
        0.0, "Loss of mean training reward that the addition of a feature may cause.", at_least=0
    )
    max_repeats: int = setting(20, "Times in a row that the same feature may be chosen.", at_least=1)
    both_directions: bool = setting(
        False, "Also use every feature with its sign reversed; needed where low values mark relevant items."
    )

    @property
    def _most_iterations(self) -> int:
        return self.rounds

    def _climb(self, surface: RewardSurface) -> Iterator[tuple[Weights, float]]:
        num_features = len(surface.columns)
        signs = (1.0, -1.0) if self.both_directions else (1.0,)
        # (weak ranker, query): first the features as they are, then with their signs reversed.
        weak_rewards = np.array([surface.rewards(sign * column) for sign in signs for column in surface.columns])
        if np.abs(weak_rewards).max() > 1:
            raise RankPolicyError(
                f"AdaRank needs a reward from -1 to 1, such as 'map' or 'ndcg@10'; {surface.reward.name!r} reaches "
                f"{weak_rewards.flat[np.abs(weak_rewards).argmax()]:g}. CoordinateAscent takes any reward."
            )
        weights, scores = np.zeros(num_features), np.zeros(surface.dataset.num_items)
        weights_of_queries = surface.dataset.query_weights
        weights_of_queries = np.ones(surface.dataset.num_queries) if weights_of_queries is None else weights_of_queries
        query_weights = weights_of_queries / weights_of_queries.sum()
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
            if surface.mean(new_rewards) < training_reward - self.tolerance:
                is_left[chosen] = False
                continue
            repeats = repeats + 1 if chosen == last_chosen else 1
            if repeats == self.max_repeats:
                is_left[chosen] = False
            last_chosen, training_reward, scores = chosen, surface.mean(new_rewards), new_scores
            weights[feature] += alpha
            query_weights = weights_of_queries * np.exp(-new_rewards)
            query_weights /= query_weights.sum()
            yield weights, training_reward
