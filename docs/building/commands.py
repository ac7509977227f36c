"""Reference pages of the command line: every verb with its arguments, options and examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from docs.building.docstrings import inline
from rankpolicy.cli.main import LazyVerb, app


def commands() -> dict[str, Any]:
    """Every command by what is typed: ``"clicks fit"``."""
    return dict(_commands(typer.main.get_command(app), ()))


def command_page() -> str:
    """The page of all commands, as Markdown."""
    root = typer.main.get_command(app)
    lines = ["# Command line", inline(root.help or ""), _HOUSE_RULES, "| command | what it does |\n|---|---|"]
    described = commands()
    for name, command in described.items():
        lines[-1] += f"\n| [`rankpolicy {name}`](#{_anchor(name)}) | {inline(_first_sentence(command.help))} |"
    for name, command in described.items():
        lines += _section(name, command)
    return "\n\n".join(lines) + "\n"


_HOUSE_RULES = """Every command prints tables for people, or one JSON document with `--json` and nothing else on stdout. Bad input is one
line on stderr and exit status 2; `reproduce` exits with 1 when a claim fails. Input files are never overwritten."""


def _commands(group: Any, above: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, member in group.commands.items():
        command = member._command() if isinstance(member, LazyVerb) else member
        if hasattr(command, "commands"):
            yield from _commands(command, (*above, name))
        else:
            yield " ".join((*above, name)), command


def options_of(command: Any, name: str) -> list[tuple[str, str]]:
    """The arguments and options of a command with their help, as ``--help`` shows them."""
    context = typer.Context(command, info_name=name)
    records = (
        parameter.get_help_record(context)
        for parameter in command.get_params(context)
        if not parameter_hidden(parameter)
    )
    return [record for record in records if record is not None]


def parameter_hidden(parameter: Any) -> bool:
    """Whether the help page leaves it out."""
    return bool(getattr(parameter, "hidden", False))


def _section(name: str, command: Any) -> Iterator[str]:
    yield f"({_anchor(name)})=\n## rankpolicy {name}"
    yield "\n\n".join(inline(" ".join(paragraph.split())) for paragraph in (command.help or "").split("\n\n"))
    context = typer.Context(command, info_name=f"rankpolicy {name}")
    yield f"```text\n{context.get_usage().removeprefix('Usage: ')}\n```"
    rows = [f"| {_code(option)} | {inline(' '.join(text.split()))} |" for option, text in options_of(command, name)]
    yield "| option | meaning |\n|---|---|\n" + "\n".join(rows)
    examples = [line for line in (command.epilog or "").splitlines() if line.startswith("rankpolicy ")]
    if examples:
        yield "```console\n" + "\n".join(f"$ {line}" for line in examples) + "\n```"


def _code(option: str) -> str:
    return (
        f"`{option}`".replace("|", "&#124;")
        if "|" not in option
        else f"<code>{option.replace('|', '&#124;').replace('<', '&lt;')}</code>"
    )


def _anchor(name: str) -> str:
    return "rankpolicy-" + name.replace(" ", "-")


def _first_sentence(text: str | None) -> str:
    return re.split(r"(?<=\.)\s", " ".join((text or "").split()), maxsplit=1)[0]
