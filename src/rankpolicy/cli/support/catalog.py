"""Everything that has a name on the command line: rankers, models, bandits and so on, with their summaries and settings."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rankpolicy.cli.support.source import first_line, read_summary, read_table

if TYPE_CHECKING:
    from rankpolicy.settings import SettingDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of thing that has a name.

    Parameters
    ----------
    title
        Its heading.
    used
        Where such a name is used.
    table
        ``"package:TABLE"``, the table of its members.
    without_settings
        What to say of a member without settings.
    """

    title: str
    used: str
    table: str
    without_settings: str = "It has no settings."

    def summaries(self) -> dict[str, str]:
        """One line about each member, by name; read from source text where the table allows it."""
        places = read_table(*self.table.split(":"))
        if places is not None:
            return {name: read_summary(place) for name, place in places.items()}
        return {name: _summary_of(member) for name, member in self.members().items()}

    def names(self) -> list[str]:
        """The names of the members."""
        return self.names_in_source() or list(self.members())

    def names_in_source(self) -> list[str]:
        """The names of the members as far as the source text of the table shows them; imports nothing."""
        return list(read_table(*self.table.split(":")) or ())

    def members(self) -> Mapping[str, Any]:
        """The members by name; imports their table."""
        module, _, name = self.table.partition(":")
        members: Mapping[str, Any] = getattr(importlib.import_module(module), name)
        return members


KINDS: dict[str, Kind] = {
    "ranker": Kind(
        title="Rankers", used="train --method, compare and tradeoff --methods", table="rankpolicy.rankers:RANKERS"
    ),
    "model": Kind(
        title="Models", used="--set model=NAME of a ranker that trains a network", table="rankpolicy.models:MODELS"
    ),
    "estimator": Kind(
        title="Estimators of the gradient",
        used="--set estimator=NAME of a ranker",
        table="rankpolicy.gradients:ESTIMATORS",
    ),
    "metric": Kind(
        title="Metrics", used="--metrics, and --set reward=NAME of a ranker", table="rankpolicy.metrics:METRICS"
    ),
    "bandit": Kind(title="Bandits", used="simulate --bandits", table="rankpolicy.bandits:BANDITS"),
    "click model": Kind(
        title="Click models",
        used="clicks fit --models",
        table="rankpolicy.clicks:CLICK_MODELS",
        without_settings="It has no settings of its own; how it is fitted: rankpolicy clicks fit --help.",
    ),
    "position-bias method": Kind(
        title="Position-bias methods", used="clicks bias --method", table="rankpolicy.clicks:POSITION_BIAS_METHODS"
    ),
    "off-policy estimator": Kind(
        title="Off-policy estimators",
        used="estimate_policy_value(estimator=NAME) in Python",
        table="rankpolicy.off_policy:OFF_POLICY_ESTIMATORS",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One member in full: its kind, where it is, what it is, and its settings."""

    kind: str
    name: str
    place: str
    about: str
    settings: tuple[SettingDescription, ...]


def describe(name: str) -> list[Described]:
    """Every member of this name; several kinds may share a name.

    Parameters
    ----------
    name
        A name on the command line.
    """
    return [_described(kind, name, known.members()[name]) for kind, known in KINDS.items() if name in known.names()]


def _described(kind: str, name: str, member: Any) -> Described:
    about = member if isinstance(member, type) or inspect.isfunction(member) else _made_by(member)
    return Described(
        kind=kind,
        name=name,
        place=f"{getattr(about, '__module__', '')}.{getattr(about, '__qualname__', '')}",
        about=KINDS[kind].summaries()[name],
        settings=() if kind == "click model" else tuple(_settings_of(member)),
    )


def _made_by(member: Any) -> Any:
    """The class or function behind a value that stands for a member: a partial, a metric, a method with an estimate."""
    for attribute in ("func", "function", "estimate"):
        if callable(getattr(member, attribute, None)):
            return getattr(member, attribute)
    return type(member)


def _settings_of(member: Any) -> list[SettingDescription]:
    """Declared settings; the keyword arguments of a function that declares none."""
    from rankpolicy.settings import SettingDescription, describe_settings

    owner = member.func if isinstance(member, partial) else member
    if isinstance(owner, type) and dataclasses.is_dataclass(owner):
        return describe_settings(owner)
    if not inspect.isfunction(owner) and not isinstance(owner, type):
        return []
    try:
        parameters = inspect.signature(owner).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        SettingDescription(
            name=parameter.name,
            kind="" if parameter.annotation is parameter.empty else str(parameter.annotation),
            default=parameter.default,
            help="",
            range="",
            choices=(),
            read_when="",
        )
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty
    ]


def _summary_of(member: Any) -> str:
    for attribute in ("summary", "title"):
        text = getattr(member, attribute, None)
        if isinstance(text, str):
            return text
    return first_line(inspect.getdoc(member) or "") if isinstance(member, type) or inspect.isfunction(member) else ""
