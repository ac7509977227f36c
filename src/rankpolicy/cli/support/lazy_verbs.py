"""Verbs whose modules are imported when they are run: help, version and shell completion stay fast."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

CONTEXT = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """Where a verb is defined, and its line in the list of verbs.

    Parameters
    ----------
    place
        ``"module:function"``, the function that typer makes a command of; its module has EXAMPLES. Or a ``typer.Typer`` with more verbs.
    summary
        One short line, known without importing the module.
    """

    place: str
    summary: str


def group_of(verbs: Mapping[str, Verb]) -> type[TyperGroup]:
    """The class of a typer group that has these verbs.

    Parameters
    ----------
    verbs
        The verbs by name, in the order of the help page.
    """

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = {name: LazyVerb(name, verb) for name, verb in verbs.items()}

    return LazyGroup


class LazyVerb(TyperCommand):
    """A verb as the help page and shell completion list it; the command itself takes over when its arguments are read."""

    def __init__(self, name: str, verb: Verb) -> None:
        super().__init__(name, help=verb.summary, short_help=verb.summary)
        self._place = verb.place

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self._command().make_context(info_name, args, parent=parent, **extra)

    def _command(self) -> Any:
        module_name, _, attribute = self._place.partition(":")
        module = importlib.import_module(module_name)
        member = getattr(module, attribute)
        if isinstance(member, typer.Typer):
            return typer.main.get_command(member)
        app = typer.Typer(add_completion=False, rich_markup_mode="rich", context_settings=CONTEXT)
        app.command(self.name, help=_reflowed(member.__doc__), epilog=module.EXAMPLES)(member)
        return typer.main.get_command(app)


def _reflowed(docstring: str) -> str:
    """The paragraphs of a docstring, one line each, so that the terminal's width breaks them and not the source's."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(docstring).split("\n\n"))
