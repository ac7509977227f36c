"""rankpolicy methods

For each setting: what it is, the values it may have, its default, and when it is read. Rankers and bandits take settings by
--set NAME=VALUE.

Parameters
----------
name : NAME
    One of them, to see its settings.

Examples
--------
rankpolicy methods
rankpolicy methods pg-rank
rankpolicy methods dcm-kl-ucb --json
"""

from __future__ import annotations

import dataclasses
import difflib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support import options
from rankpolicy.cli.support.catalog import KINDS, Described, describe
from rankpolicy.cli.support.output import console, print_json, show
from rankpolicy.cli.support.run import plain_for_json
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.declarations.setting_texts import SettingDescription


def _names_that_start(incomplete: str) -> list[str]:
    names = dict.fromkeys(name for kind in KINDS.values() for name in kind.locations)
    return [name for name in names if name.startswith(incomplete)]


def methods(
    name: Annotated[str, typer.Argument(autocompletion=_names_that_start)] = "",
    *,
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """List rankers, models, estimators, metrics, bandits, click models and more; with NAME, show its settings."""
    if not name:
        _list(as_json)
        return
    members = describe(name)
    if not members:
        raise RankPolicyError(_unknown(name))
    if as_json:
        print_json({"name": name, "found": [_as_json(member) for member in members]})
        return
    for number, member in enumerate(members):
        _show(member, is_first=number == 0)


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(
        name.lower(), [member for kind in KINDS.values() for member in kind.locations], n=1
    )
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"Unknown name {name!r}.{hint} For all names: rankpolicy methods."


def _list(as_json: bool) -> None:
    summaries = {name: kind.summaries() for name, kind in KINDS.items()}
    if as_json:
        print_json({"kinds": summaries})
        return
    from rich.table import Table
    from rich.text import Text

    out = console()
    width = max(len(name) for members in summaries.values() for name in members)
    for kind, members in summaries.items():
        out.print(Text.assemble((KINDS[kind].title, "bold"), (f"  {KINDS[kind].used}", "dim")))
        table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=True)
        table.add_column(min_width=width, no_wrap=True, style="cyan")
        table.add_column(overflow="fold")
        for name, summary in members.items():
            table.add_row(name, Text(summary))
        out.print(table)
        out.print()
    out.print("The settings of one of them: rankpolicy methods NAME", style="dim")


def _show(member: Described, *, is_first: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    out = console()
    if not is_first:
        out.print()
    out.print(Text.assemble((member.name, "bold cyan"), f"  {member.kind}  ", (member.location, "dim")))
    show(member.summary)
    show(f"used in: {KINDS[member.kind].used}", dim=True)
    if not member.settings:
        show(KINDS[member.kind].without_settings)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("setting", no_wrap=True, style="cyan")
    table.add_column("default", overflow="fold", max_width=18)
    table.add_column("what it is", overflow="fold")
    for setting in member.settings:
        text = Text(setting.help)
        text.append(f"{' ' if setting.help else ''}{_values(setting)}", style="dim")
        table.add_row(setting.name, Text(_default(setting)), text)
    out.print(table)


def _values(setting: SettingDescription) -> str:
    """What values a setting may have and when it is read, in words."""
    kind = f"One of {', '.join(setting.choices)}" if setting.choices else setting.kind[:1].upper() + setting.kind[1:]
    kind = "" if setting.kind == "any" else kind
    facts = ", ".join(fact for fact in (kind, setting.range) if fact)
    facts = facts[:1].upper() + facts[1:]
    when = f" Read only when {setting.read_when}." if setting.read_when else ""
    return f"{facts}.{when}" if facts else when.strip()


def _default(setting: SettingDescription) -> str:
    if setting.default is dataclasses.MISSING:
        return "(required)"
    if isinstance(setting.default, tuple | list):
        return ",".join(map(str, setting.default)) or "(empty)"
    if setting.default is None or isinstance(setting.default, bool):
        return str(setting.default).lower()
    return str(setting.default)


def _as_json(member: Described) -> dict[str, Any]:
    settings = [
        {field.name: getattr(setting, field.name) for field in dataclasses.fields(setting)}
        for setting in member.settings
    ]
    for facts in settings:
        facts["required"] = facts["default"] is dataclasses.MISSING
        facts["default"] = None if facts["required"] else plain_for_json(facts["default"])
    return {"kind": member.kind, "class": member.location, "summary": member.summary, "settings": settings}
