"""The points of a trade-off sweep: for each method, which setting is swept and over which values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rankpolicy.declarations.settings import check_setting, declaration_of
from rankpolicy.experiments.selection import MethodToRun, new_ranker
from rankpolicy.experiments.tradeoff_curves import BOUND, STRENGTH
from rankpolicy.rankers.base import Ranker
from rankpolicy.types import RankPolicyError

# From no fairness to as much as a method can give, found on make_fair_synthetic and German Credit. DELTR's penalty is the square of
# a small difference; for the linear program higher strengths change no ranking.
DEFAULT_STRENGTHS: dict[str, tuple[float, ...]] = {
    "deltr": (0, 1, 10, 30, 100, 1e3),
    "fair-exposure": (0, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 30, 100, 1000),
    "fair-lp": (0, 0.01, 0.03, 0.1, 0.3, 1),
}
STRENGTHS = (0, 1, 3, 5, 10, 15, 20, 30, 100)  # of all other methods

Strengths = Sequence[float] | Mapping[str, Sequence[float]] | None  # for all methods, by method, or the defaults


def swept_values(
    method: MethodToRun, settings: Mapping[str, Any], strengths: Strengths, bounds: Sequence[float] | None
) -> list[dict[str, float]]:
    """The value of the swept setting at each point of a curve; one empty dict for a method that has nothing to sweep."""
    free = [name for name in method.ranker_class.setting_names() if name not in settings]
    unread = _unread(method.ranker_class, settings)
    if bounds is not None and BOUND in free and BOUND not in unread:
        return [{BOUND: value} for value in _checked(bounds, "bounds")]
    if STRENGTH not in free or STRENGTH in unread:
        return [{}]
    chosen = strengths.get(method.name) if isinstance(strengths, Mapping) else strengths
    values = DEFAULT_STRENGTHS.get(method.ranker_class.name, STRENGTHS) if chosen is None else chosen
    return [{STRENGTH: value} for value in _checked(values, "strengths")]


def settings_of_points(
    method: MethodToRun, measured: Mapping[str, Any], swept: Sequence[Mapping[str, float]]
) -> list[dict[str, Any]]:
    """All settings of the ranker at each point; wrong ones are refused.

    ``measured`` are settings that the ranker shares with the measurement. A setting that a ranker does not read at one point (such as
    ``fairness`` at strength 0) is left out there; one given by the user that no point reads is refused.
    """
    points = [{**measured, **method.settings, **change} for change in swept]
    unread = [_unread(method.ranker_class, settings) for settings in points]
    read_nowhere = set.intersection(*unread) - (set(measured) - set(method.settings))
    settings_read = [
        {name: value for name, value in settings.items() if name.partition("__")[0] not in names - read_nowhere}
        for settings, names in zip(points, unread, strict=True)
    ]
    for settings in settings_read:
        new_ranker(method.ranker_class, settings)
    return settings_read


def _unread(ranker_class: type[Ranker], settings: Mapping[str, Any]) -> set[str]:
    """The settings that a ranker with these settings does not read."""
    ranker = ranker_class()
    for name in ranker_class.setting_names():
        if name in settings:
            check_setting(ranker_class, name, settings[name])
            setattr(ranker, name, settings[name])  # set_params would refuse what is not read
    conditions = {name: declaration_of(ranker_class, name).read_when for name in ranker_class.setting_names()}
    return {name for name, condition in conditions.items() if condition is not None and not condition.holds(ranker)}


def _checked(values: Sequence[float], what: str) -> list[float]:
    numbers = [float(value) for value in values]
    if not numbers or any(not math.isfinite(number) or number < 0 for number in numbers):
        raise RankPolicyError(f"{what} must be one or more finite numbers, 0 or more; got {numbers}.")
    return list(dict.fromkeys(numbers))
