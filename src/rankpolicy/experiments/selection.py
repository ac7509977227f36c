"""Choosing a method by name, and its settings by how they do on validation data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.rankers.base import Ranker
from rankpolicy.types import RankPolicyError, unknown_name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """The fitted ranker that did best on validation data, and what was tried to find it."""

    ranker: Ranker
    settings: dict[str, Any]  # what was set; all other settings have their defaults
    tried: tuple[tuple[dict[str, Any], float], ...]  # settings and their validation score, in the order tried


def ranker_class_named(name: str) -> type[Ranker]:
    """The class of a method, by the name the command line uses.

    What follows a colon is a label of one's own, by which two settings of one method are told apart: ``pg-rank:linear``.

    >>> ranker_class_named("pg-rnk")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown method 'pg-rnk'. Did you mean 'pg-rank'? Known: ...
    """
    from rankpolicy.rankers import RANKERS

    method = name.partition(":")[0]
    if method not in RANKERS:
        raise RankPolicyError(unknown_name("method", method, RANKERS))
    return RANKERS[method]


def settings_to_try(ranker_class: type[Ranker], settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What ``fit_best`` tries: the changes of the class, each under what the user has fixed, without repeats.

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


def fit_best(
    ranker_class: type[Ranker],
    settings: Mapping[str, Any],
    train: RankingDataset,
    valid: RankingDataset,
    *,
    max_candidates: int | None = None,
    progress: bool | None = None,
) -> Selection:
    """Fit one ranker for every entry of the class's ``settings_to_try`` and keep the best on validation data; the first wins a tie.

    ``settings`` are the user's: they hold in every candidate. ``max_candidates=1`` takes the defaults without a search.
    """
    candidates = settings_to_try(ranker_class, settings)[:max_candidates]
    return best_of(ranker_class, candidates, train, valid, progress=progress)


def best_of(
    ranker_class: type[Ranker],
    candidates: Sequence[dict[str, Any]],
    train: RankingDataset,
    valid: RankingDataset,
    *,
    progress: bool | None = None,
) -> Selection:
    """Fit one ranker for each of these settings and keep the best on validation data; the first wins a tie."""
    best: Ranker | None = None
    chosen: dict[str, Any] = {}
    tried: list[tuple[dict[str, Any], float]] = []
    for candidate in candidates:
        ranker = ranker_class().set_params(**candidate).fit(train, valid=valid, progress=progress)
        score = _validation_score(ranker)
        tried.append((candidate, score))
        if best is None or score > _validation_score(best):
            best, chosen = ranker, candidate
    assert best is not None
    return Selection(ranker=best, settings=chosen, tried=tuple(tried))


def _validation_score(ranker: Ranker) -> float:
    if ranker.best_score_ is None:
        raise RankPolicyError(
            f"{type(ranker).__name__} must measure validation data to be chosen by it; it has no best_score_."
        )
    return ranker.best_score_
