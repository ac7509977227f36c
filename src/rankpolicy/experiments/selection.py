"""Methods to run, and the choice among settings of one method by validation data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.display import short_repr
from rankpolicy.executors import Executor, opened
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.fits import fit_together
from rankpolicy.rankers.members import ranker_class_named
from rankpolicy.rankers.networks.network import NetworkRanker
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """The best fitted ranker on validation data, and all settings that were tried.

    Parameters
    ----------
    ranker
        The fitted ranker with the highest validation score.
    settings
        Its settings, as far as they were set; all others have their defaults.
    tried
        All settings that were tried and their validation scores, in order.
    """

    ranker: Ranker
    settings: dict[str, Any]
    tried: tuple[tuple[dict[str, Any], float], ...]

    __repr__ = short_repr


@checked_kinds
def settings_to_try(ranker_class: type[Ranker], settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The settings that ``fit_best`` tries: the ``settings_to_try`` of the class, overridden by the user's, without repeats.

    Parameters
    ----------
    ranker_class
        The class of the ranker.
    settings
        Settings fixed by the user: they hold in every candidate.

    >>> from rankpolicy.rankers import LambdaMART
    >>> settings_to_try(LambdaMART, {"num_leaves": 31, "min_items_in_leaf": 5})
    [{'num_leaves': 31, 'min_items_in_leaf': 5}]
    """
    ranker_class().set_params(**settings)  # refuses wrong settings before any training
    candidates: list[dict[str, Any]] = []
    for change in ranker_class.settings_to_try:
        candidate = {**change, **settings}
        if candidate not in candidates and _is_allowed(ranker_class, candidate):
            candidates.append(candidate)
    return candidates or [dict(settings)]


def _is_allowed(ranker_class: type[Ranker], settings: Mapping[str, Any]) -> bool:
    """Whether all settings would be read: a change of model may leave the user's settings without effect."""
    try:
        ranker_class().set_params(**settings)
    except RankPolicyError:
        return False
    return True


@checked_kinds
def fit_best(
    ranker_class: type[Ranker],
    settings: Mapping[str, Any],
    train: RankingDataset,
    valid: RankingDataset,
    *,
    max_candidates: int | None = None,
    progress: bool | None = None,
    executor: Executor | str | None = None,
) -> Selection:
    """Fit one ranker for every entry of ``settings_to_try`` of its class and keep the best on validation data.

    Parameters
    ----------
    ranker_class
        The class of the ranker, such as ``rp.LambdaMART``.
    settings
        Settings fixed by the user: they hold in every candidate.
    train, valid
        Training and validation data. Of equal validation scores the first candidate wins.
    max_candidates
        Try only the first so many candidates; 1 takes the defaults without a search, None tries all.
    progress
        Show a progress bar for each fit; None: when stderr is a terminal.
    executor
        Where the candidates are fitted: "serial", "processes", "ray" or an executor; None: in this process. Results do not depend on it.
    """
    candidates = settings_to_try(ranker_class, settings)[:max_candidates]
    return fit_best_of(ranker_class, candidates, train, valid, progress=progress, executor=executor)


@checked_kinds
def fit_best_of(
    ranker_class: type[Ranker],
    candidates: Sequence[Mapping[str, Any]],
    train: RankingDataset,
    valid: RankingDataset,
    *,
    progress: bool | None = None,
    executor: Executor | str | None = None,
) -> Selection:
    """Fit one ranker for each of the given settings and keep the best on validation data.

    Parameters
    ----------
    ranker_class
        The class of the ranker.
    candidates
        The settings to try, at least one.
    train, valid
        Training and validation data. Of equal validation scores the first candidate wins.
    progress
        Show a progress bar for each fit; None: when stderr is a terminal.
    executor
        Where the candidates are fitted: "serial", "processes", "ray" or an executor; None: in this process. Results do not depend on it.
    """
    if len(candidates) == 0:
        raise RankPolicyError("candidates must hold at least one dict of settings; got none.")
    best: Ranker | None = None
    chosen: dict[str, Any] = {}
    tried: list[tuple[dict[str, Any], float]] = []
    with opened(executor) as chosen_executor:
        tasks = _tasks(ranker_class, candidates, chosen_executor.jobs)
        shown = progress if chosen_executor.name == "serial" else False
        rankers = chosen_executor.map(partial(_fitted, ranker_class, train, valid, shown), tasks)
    for candidate, ranker in zip(candidates, (ranker for fitted in rankers for ranker in fitted), strict=True):
        score = _validation_score(ranker)
        tried.append((dict(candidate), score))
        if best is None or score > _validation_score(best):
            best, chosen = ranker, dict(candidate)
    assert best is not None
    return Selection(ranker=best, settings=chosen, tried=tuple(tried))


def _tasks(
    ranker_class: type[Ranker], candidates: Sequence[Mapping[str, Any]], num_jobs: int
) -> list[Sequence[Mapping[str, Any]]]:
    """Candidates that are fitted in one task: networks learn together, in as many parts as there are jobs; others one by one."""
    size = math.ceil(len(candidates) / num_jobs) if issubclass(ranker_class, NetworkRanker) else 1
    return [candidates[first : first + size] for first in range(0, len(candidates), size)]


def _fitted(
    ranker_class: type[Ranker],
    train: RankingDataset,
    valid: RankingDataset,
    progress: bool | None,
    candidates: Sequence[Mapping[str, Any]],
) -> list[Ranker]:
    rankers = [new_ranker(ranker_class, candidate) for candidate in candidates]
    if len(rankers) > 1:
        for notes in fit_together(rankers, [train] * len(rankers), [valid] * len(rankers), progress=progress):
            for note in notes:
                warnings.warn(note, stacklevel=4)
        return rankers
    return [ranker.fit(train, valid=valid, progress=progress) for ranker in rankers]


def _validation_score(ranker: Ranker) -> float:
    if ranker.best_score_ is None:
        raise RankPolicyError(
            f"{type(ranker).__name__} must measure validation data to be chosen by it; it has no best_score_."
        )
    return ranker.best_score_
