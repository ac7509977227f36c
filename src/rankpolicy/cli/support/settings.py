"""Settings of a method from text: ``--set name=value`` and the [settings] of a run.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankpolicy.settings import parse_setting
from rankpolicy.types import RankPolicyError, unknown_name

if TYPE_CHECKING:
    from rankpolicy.rankers import Ranker


def parse_assignments(texts: Sequence[str]) -> dict[str, str]:
    """``name=value`` texts as a dict; the last of a name counts.

    >>> parse_assignments(["epochs=50", "hidden=64,64"])
    {'epochs': '50', 'hidden': '64,64'}
    """
    assignments = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise RankPolicyError(f"--set must be name=value, such as epochs=50; got {text!r}.")
        assignments[name.strip().replace("-", "_")] = value.strip()
    return assignments


def parse_settings(ranker_class: type[Ranker], texts: Mapping[str, str]) -> dict[str, Any]:
    """Settings by name, each text read as the type of its setting.

    >>> from rankpolicy.rankers import PGRank
    >>> parse_settings(PGRank, {"epochs": "50", "hidden": "64,64", "patience": "none", "reward": "ap"})
    {'epochs': 50, 'hidden': (64, 64), 'patience': None, 'reward': 'ap'}
    """
    settings = {}
    for name, text in texts.items():
        if name not in ranker_class.setting_names():
            raise RankPolicyError(unknown_name(f"setting of {ranker_class.name}:", name, ranker_class.setting_names()))
        settings[name] = parse_setting(ranker_class, name, text)
    return settings


def settings_of_methods(
    classes: Mapping[str, type[Ranker]], assignments: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Settings by method: ``pg_rank.epochs`` is for one method, ``epochs`` for every method that has it."""
    texts: dict[str, dict[str, str]] = {method: {} for method in classes}
    names = sorted({name for ranker_class in classes.values() for name in ranker_class.setting_names()})
    by_attribute = {method.replace("-", "_"): method for method in classes}
    # Names without a method first: what is said of one method goes before what is said of all.
    for full_name, text in sorted(assignments.items(), key=lambda assignment: "." in assignment[0]):
        method, dot, name = full_name.rpartition(".")
        if dot and method not in by_attribute:
            raise RankPolicyError(unknown_name("method in --set:", method.replace("_", "-"), classes))
        if not dot and name not in names:
            raise RankPolicyError(unknown_name("setting", name, names))
        for attribute, each in by_attribute.items():
            if attribute == method or (not dot and name in classes[each].setting_names()):
                texts[each][name] = text
    return {method: parse_settings(ranker_class, texts[method]) for method, ranker_class in classes.items()}


def as_text(value: Any) -> str:
    """A TOML value as one would write it behind ``--set name=``."""
    if isinstance(value, list):
        return ",".join(map(as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
