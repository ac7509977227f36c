"""The settings that are searched where the user names none."""

from __future__ import annotations

from typing import Any

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.experiments.tuning.space import Between, Space, fresh
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.rankers.trees.boosting import TreeRanker
from rankpolicy.types import RankPolicyError

_TREES: Space = {
    "learning_rate": Between(0.02, 0.2, log=True),
    "num_leaves": Between(4, 128, log=True),
    "min_items_in_leaf": Between(5, 300, log=True),
    "feature_fraction": Between(0.2, 1.0),
    "bagging_fraction": Between(0.4, 1.0),
    "l2": [0.0, 0.1, 1.0, 10.0],
}
_NETWORKS: Space = {
    "learning_rate": Between(1e-4, 3e-2, log=True),
    "batch_queries": Between(8, 128, log=True),
    "weight_decay": [0.0, 1e-3, 1e-2, 1e-1, 1.0],
    "model__hidden": [(16,), (32,), (64,), (128,), (32, 32), (64, 64), (128, 64), (128, 128)],
    "model__dropout": Between(0.0, 0.6),
    "model__query_context": ["none", "mean"],
    "scaling": ["quantile", "standardize", "log1p", "query_minmax"],
}
_LINEAR: Space = {"C": Between(1e-3, 100.0, log=True), "scaling": ["standardize", "log1p", "query_minmax"]}


@checked_kinds
def default_space(ranker: Ranker) -> dict[str, Any]:
    """The settings worth searching for this ranker: those of its kind that it has and would read.

    Parameters
    ----------
    ranker
        The ranker, with its model.

    >>> from rankpolicy.rankers import LambdaMART
    >>> sorted(default_space(LambdaMART()))
    ['bagging_fraction', 'feature_fraction', 'l2', 'learning_rate', 'min_items_in_leaf', 'num_leaves']
    """
    defaults = _TREES if isinstance(ranker, TreeRanker) else _NETWORKS if isinstance(ranker, NetworkRanker) else _LINEAR
    space = {name: values for name, values in defaults.items() if _is_taken(ranker, name, values)}
    if not space:
        raise RankPolicyError(
            f"{ranker.name} has no settings that are searched by default.",
            python="Name some, as in space={'name': Between(low, high)}.",
            command_line="Name some: --space NAME=LOW:HIGH.",
        )
    return space


def _is_taken(ranker: Ranker, name: str, values: Any) -> bool:
    tried = (values.low, values.high) if isinstance(values, Between) else values
    try:
        for value in tried:
            fresh(ranker, {name: value})
    except RankPolicyError:
        return False
    return True
