"""The space of settings that a search tries: as named by the user, or those worth searching for a kind of ranker."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.declarations.settings import plain
from rankpolicy.optional import require
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.rankers.trees.boosting import TreeRanker
from rankpolicy.types import RankPolicyError

_HIGHEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class Between:
    """All numbers from ``low`` to ``high``; whole ones where both are whole numbers.

    Parameters
    ----------
    low, high
        The lowest and the highest value.
    log
        Whether to search by factors instead of differences: for learning rates, sizes and penalties.

    >>> Between(1e-4, 1e-1, log=True).is_whole, Between(7, 127).is_whole
    (False, True)
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        numbers = (self.low, self.high)
        if any(isinstance(n, bool) or not isinstance(n, int | float) or not abs(n) <= _HIGHEST for n in numbers):
            raise RankPolicyError(f"Between needs two finite numbers; got {self.low!r} and {self.high!r}.")
        if not self.low < self.high:
            raise RankPolicyError(f"Between needs low < high; got {self.low} and {self.high}.")
        if not isinstance(self.log, bool):
            raise RankPolicyError(f"log must be True or False; got {self.log!r:.60}.")
        if self.log and self.low <= 0:
            raise RankPolicyError(f"Between with log=True needs low above 0; got {self.low}. Start at a small number.")

    @property
    def is_whole(self) -> bool:
        """Whether values are whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def holds(self, value: Any) -> bool:
        """Whether a value is one of these.

        Parameters
        ----------
        value
            The value of a setting.
        """
        kinds = int if self.is_whole else int | float
        return isinstance(value, kinds) and not isinstance(value, bool) and self.low <= value <= self.high


Space = Mapping[str, Between | Sequence[Any]]


def checked_space(ranker: Ranker, space: Space) -> dict[str, Between | tuple[Any, ...]]:
    """The space, with lists of choices as tuples, if the ranker takes every end and choice of it."""
    if not space:
        raise RankPolicyError(
            "space must name at least one setting to search, such as {'learning_rate': [1e-3, 3e-3]}."
        )
    checked: dict[str, Between | tuple[Any, ...]] = {}
    for name, values in space.items():
        if name == "random_state":
            raise RankPolicyError(
                "space must not hold random_state: every trial has a seed of its own, from that of the search. Leave it out."
            )
        if isinstance(values, Between):
            checked[name] = values
            tried: tuple[Any, ...] = (values.low, values.high)
        elif isinstance(values, Sequence) and not isinstance(values, str) and len(values):
            checked[name] = tried = tuple(tuple(value) if isinstance(value, list) else value for value in values)
        else:
            raise RankPolicyError(
                f"space[{name!r}] must be Between(low, high) or a list of values; got {values!r:.60}. For one value set it on the ranker."
            )
        if len({text_of(value) for value in tried}) < len(tried):
            raise RankPolicyError(f"space[{name!r}] must hold different values; got {values!r:.80}.")
        for value in tried:
            fresh(ranker, {name: value})
    return checked


def fresh(ranker: Ranker, settings: Mapping[str, Any]) -> Ranker:
    """An unfitted copy of a ranker with some settings changed."""
    copy = type(ranker)().set_params(**ranker.get_params(deep=False)).set_params(**settings)
    copy._check_settings()
    return copy


def text_of(value: Any) -> str:
    """A value of a setting as text that is different for different values.

    >>> text_of((64, 64)), text_of("linear")
    ('[64, 64]', '"linear"')
    """
    try:
        return json.dumps(plain(value))
    except TypeError:
        return repr(value)


def described(space: Mapping[str, Between | tuple[Any, ...]]) -> dict[str, Any]:
    """The space as JSON can hold it."""
    return {
        name: {"low": values.low, "high": values.high, "log": values.log}
        if isinstance(values, Between)
        else [text_of(value) for value in values]
        for name, values in space.items()
    }


def distributions(space: Mapping[str, Between | tuple[Any, ...]]) -> dict[str, Any]:
    """The space as Optuna's distributions; choices are known by their texts."""
    kinds = require("optuna.distributions", "Tuning")
    by_name: dict[str, Any] = {}
    for name, values in space.items():
        if not isinstance(values, Between):
            by_name[name] = kinds.CategoricalDistribution([text_of(value) for value in values])
        elif values.is_whole:
            by_name[name] = kinds.IntDistribution(values.low, values.high, log=values.log)
        else:
            by_name[name] = kinds.FloatDistribution(values.low, values.high, log=values.log)
    return by_name


def to_parameters(space: Mapping[str, Between | tuple[Any, ...]], settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Settings as Optuna knows them; None where one is outside the space."""
    by_name: dict[str, Any] = {}
    for name, values in space.items():
        value = settings[name]
        if isinstance(values, Between):
            if not values.holds(value):
                return None
            by_name[name] = value
        elif text_of(value) in map(text_of, values):
            by_name[name] = text_of(value)
        else:
            return None
    return by_name


def to_settings(space: Mapping[str, Between | tuple[Any, ...]], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a ranker from what Optuna drew."""
    by_name: dict[str, Any] = {}
    for name, value in parameters.items():
        values = space[name]
        by_name[name] = (
            value if isinstance(values, Between) else next(choice for choice in values if text_of(choice) == value)
        )
    return by_name


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
