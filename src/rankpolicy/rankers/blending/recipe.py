"""What a blend is made of: methods, the settings each is tried with, and which of them can learn from given data."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.members import RANKERS
from rankpolicy.rankers.trees.boosting import TreeRanker
from rankpolicy.types import RankPolicyError

# All of them are averaged: choosing the best on little validation data is mostly chance.
_TREE_VARIANTS: tuple[dict[str, Any], ...] = (
    {"num_leaves": 15, "min_items_in_leaf": 50},
    {"num_leaves": 7, "min_items_in_leaf": 20},
    {"num_leaves": 31, "min_items_in_leaf": 100},
)
METHODS: dict[str, tuple[dict[str, Any], ...]] = {
    "lambdamart": _TREE_VARIANTS,
    "boosted-regression": _TREE_VARIANTS,
    "pg-rank": ({"num_networks": 3},),
    "regression": ({"num_networks": 3},),
    # Reads how far an item is from the mean of its query, too.
    "context-regression": ({"num_networks": 2, "model": {"name": "mlp", "query_context": "mean"}},),
}
DEFAULT_METHODS = tuple(METHODS)
METHODS["boosted-policy"] = _TREE_VARIANTS  # with it, the blend was no better on development data, and a quarter dearer
INSTEAD_OF = {"context-regression": "regression"}  # where it is better
GATE = "boosted-regression"
EXAMPLE = "{'pg-rank': {'epochs': 20}}"
_FEW_TREES = 100  # without validation data that says when to stop


def blended_methods() -> list[str]:
    """The names of the methods that can be blended."""
    return list(METHODS)


def ranker_class_of(method: str) -> type[Ranker]:
    """The ranker of a method."""
    return RANKERS[INSTEAD_OF.get(method, method)]


def is_tree_method(method: str) -> bool:
    """Whether a method grows trees; the others train networks."""
    return issubclass(ranker_class_of(method), TreeRanker)


def new_member(
    method: str,
    variant: int,
    given: Mapping[str, Any],
    *,
    reward: Any,
    random_state: int,
    device: str,
    is_validated: bool = True,
) -> Ranker:
    """An unfitted member of a blend."""
    ranker = ranker_class_of(method)
    names = ranker.setting_names()
    settings: dict[str, Any] = {"valid_metric": reward, "random_state": random_state}
    if "reward" in names and (method != "boosted-policy" or reward_to_maximise(reward).is_additive):
        settings["reward"] = reward
    if "device" in names:
        settings["device"] = device
    if is_tree_method(method) and not is_validated:
        settings["num_trees"] = _FEW_TREES
    variants = METHODS[method]
    return ranker().set_params(**settings | variants[variant % len(variants)] | dict(given))


def new_gate(*, reward: Any, random_state: int, is_validated: bool) -> TreeRanker | None:
    """Unfitted trees that find the features which networks read; None without LightGBM."""
    if not has_lightgbm():
        return None
    gate = new_member(GATE, 0, {}, reward=reward, random_state=random_state, device="cpu", is_validated=is_validated)
    assert isinstance(gate, TreeRanker)
    return gate


def has_lightgbm() -> bool:
    """Whether trees can be grown here."""
    return importlib.util.find_spec("lightgbm") is not None


def why_left_out(method: str, train: RankingDataset) -> str | None:
    """Why a method cannot learn from this data here; None if it can."""
    ranker = ranker_class_of(method)
    if is_tree_method(method) and not has_lightgbm():
        return "it needs LightGBM: pip install lightgbm"
    if train.label_kind == "relevances" and not ranker.learns_from_relevances:
        return "it does not learn from relevances that were estimated from clicks"
    if method == "lambdamart" and bool((train.labels_by_query != np.round(train.labels_by_query)).any()):
        return "it needs whole-number labels"
    return None


def check_methods(methods: Sequence[str]) -> None:
    """Refuse no method, or one named twice."""
    if not methods or len(set(methods)) < len(methods):
        raise RankPolicyError(f"methods must name one or more different methods; got {tuple(methods)!r}.")
