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
    from rankpolicy.declarations.setting_texts import SettingDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of thing that has a name."""

    title: str
    used: str
    table: str
    members_are_fitted: bool = False
    without_settings: str = "It has no settings."

    def summaries(self) -> dict[str, str]:
        """One line about each member, by name; read from source text where the table allows it."""
        locations = read_table(*self.table.split(":"))
        if locations is not None:
            return {name: read_summary(location) for name, location in locations.items()}
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
    "fairness": Kind(
        title="Aims of fairness",
        used="--set fairness=NAME of a fair ranker, tradeoff --fairness; their settings: --set fairness.SETTING=VALUE",
        table="rankpolicy.fairness:AIMS",
    ),
    "loss": Kind(
        title="Supervised losses",
        used="--set loss=NAME of bandit-rank; their settings: --set loss.SETTING=VALUE",
        table="rankpolicy.objectives:SUPERVISED_LOSSES",
    ),
    "epsilon": Kind(
        title="Ways to explore",
        used="--set epsilon=NAME of bandit-rank; their settings: --set epsilon.SETTING=VALUE",
        table="rankpolicy.objectives:EXPLORATIONS",
    ),
    "estimator": Kind(
        title="Estimators of the gradient",
        used="--set estimator=NAME of a ranker",
        table="rankpolicy.gradients:ESTIMATORS",
        without_settings="It has no settings of its own; num_samples and control are settings of the ranker.",
    ),
    "metric": Kind(
        title="Metrics", used="--metrics, and --set reward=NAME of a ranker", table="rankpolicy.metrics:METRICS"
    ),
    "bandit": Kind(title="Bandits", used="simulate --bandits", table="rankpolicy.bandits:BANDITS"),
    "click model": Kind(
        title="Click models",
        used="clicks fit --models",
        table="rankpolicy.clicks:CLICK_MODELS",
        members_are_fitted=True,
        without_settings="It has no settings of its own; how it is fitted: rankpolicy clicks fit --help.",
    ),
    "position-bias method": Kind(
        title="Position-bias methods",
        used="clicks bias --method",
        table="rankpolicy.clicks:POSITION_BIAS_METHODS",
        without_settings="It has no settings of its own; how it is estimated: rankpolicy clicks bias --help.",
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
    location: str
    summary: str
    settings: tuple[SettingDescription, ...]


def describe(name: str) -> list[Described]:
    """Every member of this name; several kinds may share a name."""
    return [_described(kind, name, table.members()[name]) for kind, table in KINDS.items() if name in table.names()]


def _described(kind: str, name: str, member: Any) -> Described:
    definition = member if isinstance(member, type) or inspect.isfunction(member) else _made_by(member)
    return Described(
        kind=kind,
        name=name,
        location=f"{getattr(definition, '__module__', '')}.{getattr(definition, '__qualname__', '')}",
        summary=KINDS[kind].summaries()[name],
        settings=() if KINDS[kind].members_are_fitted else tuple(_settings_of(member)),
    )


def _made_by(member: Any) -> Any:
    """The class or function behind a member that is a value: a partial, a metric, a method with an estimate."""
    for attribute in ("func", "function", "estimate"):
        if callable(getattr(member, attribute, None)):
            return getattr(member, attribute)
    return type(member)


def _settings_of(member: Any) -> list[SettingDescription]:
    """The settings of a class, or the options of a value that declares some; a function has none."""
    from rankpolicy.declarations.setting_texts import SettingDescription, describe_settings

    owner = member.func if isinstance(member, partial) else member
    if isinstance(owner, type):
        return describe_settings(owner) if dataclasses.is_dataclass(owner) else []
    options = getattr(member, "options", None)
    if not isinstance(options, Mapping) or not options:
        return []
    parameters = inspect.signature(_made_by(member)).parameters
    return [
        SettingDescription(
            name=name,
            kind="",
            default=parameters[name].default,
            help=declared.help,
            range=declared.range_in_words(),
            choices=tuple(declared.known_choices()),
            read_when="",
        )
        for name, declared in options.items()
    ]


def _summary_of(member: Any) -> str:
    for attribute in ("summary", "title"):
        text = getattr(member, attribute, None)
        if isinstance(text, str):
            return text
    return first_line(inspect.getdoc(member) or "") if isinstance(member, type) or inspect.isfunction(member) else ""
