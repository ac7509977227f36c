"""The methods of an experiment: for each its name in tables and curves, its ranker class and its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.members import ranker_class_named
from rankpolicy.types import RankPolicyError

# Method names; or settings by method name; or (method name, settings) by a name of the user's choice.
Methods = Sequence[str] | Mapping[str, Mapping[str, Any] | tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodToRun:
    """One method of an experiment.

    Parameters
    ----------
    name
        Its name in tables, curves and reports.
    ranker_class
        The class of its rankers.
    settings
        The settings that differ from the defaults of the class.
    """

    name: str
    ranker_class: type[Ranker]
    settings: dict[str, Any]


@checked_kinds
def methods_to_run(methods: Methods) -> dict[str, MethodToRun]:
    """The methods of an experiment by name, with their ranker classes looked up.

    Parameters
    ----------
    methods
        One of: a list of method names (``["pg-rank", "lambdamart"]``); a mapping from method names to settings
        (``{"pg-rank": {"epochs": 50}}``); or a mapping from names of your choice to pairs of a method name and settings, which lets one
        method appear several times (``{"linear": ("pg-rank", {"model": "linear"}), "mlp": ("pg-rank", {})}``).

    >>> methods = methods_to_run({"small": ("lambdamart", {"num_leaves": 7}), "rank-svm": {}})
    >>> [(method.name, method.ranker_class.__name__, method.settings) for method in methods.values()]
    [('small', 'LambdaMART', {'num_leaves': 7}), ('rank-svm', 'RankSVM', {})]
    """
    if len(methods) == 0:
        raise RankPolicyError("an experiment needs at least one method, such as 'pg-rank'; got none.")
    if not isinstance(methods, Mapping):
        methods = {method: {} for method in methods}
    to_run = {}
    for name, value in methods.items():
        method, settings = value if isinstance(value, tuple) else (name, value)
        to_run[name] = MethodToRun(name=name, ranker_class=ranker_class_named(method), settings=dict(settings))
    return to_run


def new_ranker(ranker_class: type[Ranker], settings: Mapping[str, Any]) -> Ranker:
    """An unfitted ranker; settings that the class does not have, or that are wrong together, are refused."""
    return ranker_class().set_params(**settings)
