"""Dueling bandit gradient descent: the ranker that wins interleaved lists moves the weights."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.metrics.ranked import rank_by_score
from rankpolicy.online.online_ranker import Floats, Items, Mask, OnlineRanker, ShownLists


@final
@settings_class
class DBGD(OnlineRanker):
    """Dueling bandit gradient descent (Yue & Joachims 2009), compared by team-draft interleaving (Radlinski et al. 2008).

    Each list interleaves the ranker with one whose weights are exploration * u away, u a random direction of length 1. If the other
    team has more clicks, weights += learning_rate * u.
    """

    name: ClassVar[str] = "dbgd"

    learning_rate: float = setting(0.01, "Step towards a ranker that won.", above=0)
    exploration: float = setting(1.0, "Distance of the rankers to compare with.", above=0)

    def _rank(self, features: Floats, mask: Mask, generator: np.random.Generator) -> ShownLists:
        directions = generator.standard_normal((len(features), self.num_features))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        scores = features @ self.weights
        others = scores + self.exploration * np.einsum("qif,qf->qi", features, directions)
        # Equal scores, as those of weights 0, in random order.
        jitter = 1e-9 * generator.random((2, *scores.shape))
        orders = rank_by_score(np.stack([scores, others]) + jitter, mask)
        length = min(self.cutoff, scores.shape[1])
        rankings, teams = team_draft(np.asarray(orders), length, generator)
        return ShownLists(rankings=rankings, memo={"directions": directions, "teams": teams})

    def _learn(self, features: Floats, mask: Mask, shown: ShownLists, clicks: Floats) -> None:
        assert shown.memo is not None
        ahead = (clicks * np.where(shown.memo["teams"] == 1, 1.0, -1.0)).sum(1)
        self.weights = self.weights + self.learning_rate * (ahead > 0) @ shown.memo["directions"]


def team_draft(orders: Items, length: int, generator: np.random.Generator) -> tuple[Items, NDArray[np.int8]]:
    """Interleaved lists and the team, 0 or 1, of the item at each position (query, position), of two orders (2, query, item).

    Two teams choose in turns, a coin says which one begins each round, and each chooses the first item of its order that is not taken.
    """
    _, num_queries, num_items = orders.shape
    query = np.arange(num_queries)
    is_taken = np.zeros((num_queries, num_items), bool)
    rankings = np.empty((num_queries, length), np.int64)
    teams = np.empty((num_queries, length), np.int8)
    for position in range(length):
        begins = position % 2 == 0
        team = generator.integers(2, size=num_queries) if begins else 1 - teams[:, position - 1]
        order = orders[team, query]
        first = np.argmin(np.take_along_axis(is_taken, order, 1), axis=1)
        rankings[:, position], teams[:, position] = order[query, first], team
        is_taken[query, rankings[:, position]] = True
    return rankings, teams
