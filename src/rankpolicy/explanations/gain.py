"""Importance of features by gain: how much the splits on each feature lowered the loss of boosted trees in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.arguments import checked_level, seeded
from rankpolicy.explanations.exact_values import Split, trees_of
from rankpolicy.explanations.importance import FeatureImportance
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker

_NUM_RESAMPLES = 2000


def gain_importance(ranker: Ranker, *, level: float = 0.95, random_state: int | None = 0) -> FeatureImportance:
    """Share of each feature in the gain of all splits of boosted trees; needs no data.

    The interval is a bootstrap over trees: it shows how far the share rests on few trees, not what other data would give.

    Parameters
    ----------
    ranker
        A fitted ranker over trees.
    level
        Level of the intervals, between 0 and 1.
    random_state
        Seed of the bootstrap; None draws a new one each time.
    """
    from rankpolicy.rankers.trees.boosting import TreeRanker

    if not isinstance(ranker, TreeRanker):
        raise RankPolicyError(
            f"the method 'gain' adds up what the splits of trees gained; {type(ranker).__name__} has no trees. Use 'permutation'."
        )
    ranker._require_fitted()
    checked_level(level)
    generator = seeded(random_state)
    gains = np.zeros((ranker.best_iteration_, ranker.num_features_))  # (tree, feature)
    for tree, root in enumerate(trees_of(ranker._booster, num_trees=ranker.best_iteration_)):
        _add_gains(root, gains[tree])
    names = ranker.feature_names_ or [f"feature {number}" for number in range(ranker.num_features_)]
    drawn = generator.multinomial(len(gains), np.full(len(gains), 1 / len(gains)), _NUM_RESAMPLES)
    lower, upper = np.quantile(_shares(drawn @ gains), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return FeatureImportance(
        names=tuple(names),
        importances=_shares(gains.sum(axis=0)),
        lower=lower,
        upper=upper,
        method="gain",
        metric=None,
        level=level,
        ranker=ranker.name,
    )


def _add_gains(node: Split | float, gains: NDArray[np.float64]) -> None:
    if isinstance(node, Split):
        gains[node.feature] += node.gain
        _add_gains(node.left, gains)
        _add_gains(node.right, gains)


def _shares(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gains (..., feature) divided by their sum; 0 where nothing was gained."""
    total = gains.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(gains, total, out=np.zeros_like(gains), where=total > 0))
