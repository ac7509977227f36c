"""Everything that has a name on the command line: rankers, models, bandits and so on, with their summaries and settings.

Lists are answered from the source text: importing all that it names would take seconds.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import runpy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rankpolicy

if TYPE_CHECKING:
    from rankpolicy.declarations.setting_texts import SettingDescription


_ROOT = Path(rankpolicy.__file__).parents[1]


def read_locations(module: str, name: str) -> dict[str, str]:
    """Module and name of each member of a table, from a module that imports nothing heavy.

    >>> read_locations("rankpolicy.rankers.members", "RANKERS")["pg-rank"]
    'rankpolicy.rankers.networks.pg_rank:PGRank'
    """
    # Run by its path: an import would load the package around it.
    locations: dict[str, str] = runpy.run_path(str(_ROOT.joinpath(*module.split(".")).with_suffix(".py")))[
        name
    ].locations
    return locations


def read_summary(location: str) -> str:
    """The first line of the docstring of a class or function; the ``title`` of a value, or the first line about its ``function``.

    >>> read_summary("rankpolicy.cli.support.catalog:first_line")
    'The first line of a docstring, or its first paragraph where the sentence goes on.'
    """
    module, _, name = location.partition(":")
    tree = _tree(module)
    # Packages import the names that they export under "if TYPE_CHECKING:".
    exported = [inner for node in tree.body if isinstance(node, ast.If) for inner in node.body]
    for node in [*tree.body, *exported]:
        match node:
            case ast.ClassDef() | ast.FunctionDef() if node.name == name:
                return first_line(ast.get_docstring(node) or "")
            case ast.ImportFrom(module=str(origin)):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return read_summary(f"{origin}:{alias.name}")
            case (
                ast.Assign(targets=[ast.Name(id=target)], value=ast.Call(keywords=keywords))
                | ast.AnnAssign(target=ast.Name(id=target), value=ast.Call(keywords=keywords))
            ) if target == name:
                for keyword in keywords:
                    match keyword:
                        case ast.keyword(arg="title", value=ast.Constant(value=str(title))):
                            return f"{title[:1].upper()}{title[1:]}."
                        case ast.keyword(arg="function", value=ast.Name(id=function)):
                            return read_summary(f"{module}:{function}")
    return first_line(ast.get_docstring(tree) or "")


def first_line(docstring: str) -> str:
    """The first line of a docstring, or its first paragraph where the sentence goes on.

    >>> first_line("A ranker that\\n    sorts.\\n\\n    More.")
    'A ranker that sorts.'
    """
    paragraph = docstring.strip().split("\n\n")[0]
    line = paragraph.split("\n")[0].strip()
    return (line if line.endswith(".") else " ".join(paragraph.split())).replace("``", "")


@cache
def _tree(module: str) -> ast.Module:
    base = _ROOT.joinpath(*module.split("."))
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8") if file.is_file() else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of thing that has a name."""

    title: str
    used: str
    table: str
    members_are_fitted: bool = False
    without_settings: str = "It has no settings."

    @property
    def locations(self) -> dict[str, str]:
        """Module and name of each member, by the name of the member; imports nothing."""
        return read_locations(*self.table.split(":"))

    def summaries(self) -> dict[str, str]:
        """One line about each member, by name, read from source text."""
        return {name: read_summary(location) for name, location in self.locations.items()}

    def member(self, name: str) -> Any:
        """The member of this name; imports it."""
        module, _, table = self.table.partition(":")
        return getattr(importlib.import_module(module), table)[name]


KINDS: dict[str, Kind] = {
    "ranker": Kind(
        title="Rankers",
        used="train --method, compare and tradeoff --methods",
        table="rankpolicy.rankers.members:RANKERS",
    ),
    "model": Kind(
        title="Models",
        used="--set model=NAME of a ranker that trains a network",
        table="rankpolicy.models.members:MODELS",
    ),
    "fairness": Kind(
        title="Aims of fairness",
        used="--set fairness=NAME of a fair ranker, tradeoff --fairness; their settings: --set fairness.SETTING=VALUE",
        table="rankpolicy.fairness.members:AIMS",
    ),
    "loss": Kind(
        title="Supervised losses",
        used="--set loss=NAME of bandit-rank; their settings: --set loss.SETTING=VALUE",
        table="rankpolicy.objectives.members:SUPERVISED_LOSSES",
    ),
    "epsilon": Kind(
        title="Ways to explore",
        used="--set epsilon=NAME of bandit-rank; their settings: --set epsilon.SETTING=VALUE",
        table="rankpolicy.objectives.members:EXPLORATIONS",
    ),
    "estimator": Kind(
        title="Estimators of the gradient",
        used="--set estimator=NAME of a ranker",
        table="rankpolicy.gradients.members:ESTIMATORS",
        without_settings="It has no settings of its own; num_samples and control are settings of the ranker.",
    ),
    "metric": Kind(
        title="Metrics", used="--metrics, and --set reward=NAME of a ranker", table="rankpolicy.metrics.members:METRICS"
    ),
    "bandit": Kind(title="Bandits", used="simulate --bandits", table="rankpolicy.bandits.members:BANDITS"),
    "online ranker": Kind(
        title="Rankers that learn online",
        used="rp.online.ONLINE_RANKERS[NAME] in Python",
        table="rankpolicy.online.members:ONLINE_RANKERS",
    ),
    "click model": Kind(
        title="Click models",
        used="clicks fit --models",
        table="rankpolicy.clicks.models.members:CLICK_MODELS",
        members_are_fitted=True,
        without_settings="It has no settings of its own; how it is fitted: rankpolicy clicks fit --help.",
    ),
    "position-bias method": Kind(
        title="Position-bias methods",
        used="clicks bias --method",
        table="rankpolicy.clicks.position_bias.members:POSITION_BIAS_METHODS",
        without_settings="It has no settings of its own; how it is estimated: rankpolicy clicks bias --help.",
    ),
    "off-policy estimator": Kind(
        title="Off-policy estimators",
        used="estimate_policy_value(estimator=NAME) in Python",
        table="rankpolicy.off_policy.members:OFF_POLICY_ESTIMATORS",
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
    return [_described(kind, name, table.member(name)) for kind, table in KINDS.items() if name in table.locations]


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
