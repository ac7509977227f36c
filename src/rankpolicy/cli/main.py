"""The entry point of the command line: it runs a verb, and turns bad input into one line on stderr.

The module of a verb is imported when the verb is run: help, version and shell completion stay fast.
"""

from __future__ import annotations

import importlib
import shlex
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from rankpolicy.cli.support.options import RENAMED
from rankpolicy.cli.support.output import note
from rankpolicy.cli.support.verb_parameters import documentation_of, for_typer
from rankpolicy.cli.verbs import GROUPS, VERBS
from rankpolicy.optional import hidden_from
from rankpolicy.types import MissingDependencyError, RankPolicyError
from rankpolicy.writing import inputs_kept

BAD_INPUT = 2
INTERRUPTED = 130
STYLE: dict[str, Any] = {"rich_markup_mode": "rich", "context_settings": {"help_option_names": ["-h", "--help"]}}


def group_of(package: str, verbs: Mapping[str, str]) -> type[TyperGroup]:
    """The class of a typer group of the verbs of a package, in the order of the help page."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = {name: LazyVerb(name, package, summary) for name, summary in verbs.items()}

    return LazyGroup


class LazyVerb(TyperCommand):
    """A verb as the help page and shell completion list it; the command itself takes over when its arguments are read."""

    def __init__(self, name: str, package: str, summary: str) -> None:
        super().__init__(name, help=summary, short_help=summary)
        self._package = package

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self._command().make_context(info_name, args, parent=parent, **extra)

    def _command(self) -> Any:
        assert self.name is not None
        module_name = f"{self._package}.{self.name.replace('-', '_')}"
        if self.name in GROUPS and self._package == __package__:
            verbs, help = GROUPS[self.name]
            app = typer.Typer(cls=group_of(module_name, verbs), help=help, add_completion=False, **STYLE)
            app.callback(invoke_without_command=True)(_help_without_verb)
        else:
            verb = getattr(importlib.import_module(module_name), self.name.replace("-", "_"))
            documentation = documentation_of(verb)
            app = typer.Typer(add_completion=False, **STYLE)
            app.command(self.name, help=documentation.paragraphs, epilog=documentation.examples)(for_typer(verb))
        return typer.main.get_command(app)


def _help_without_verb(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


app = typer.Typer(
    cls=group_of("rankpolicy.cli", VERBS),
    name="rankpolicy",
    help="Learn ranking policies, distributions over orderings of items for a query, and measure them.",
    epilog="Start with: [bold]rankpolicy demo[/bold]",
    pretty_exceptions_enable=False,
    **STYLE,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from rankpolicy import __version__

        typer.echo(f"rankpolicy {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    _help_without_verb(ctx)


_TOO_LARGE = "this needs more memory than there is. Choose smaller settings, or less data."


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; None takes the arguments of the process."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with inputs_kept():
            status = app(words, prog_name="rankpolicy", standalone_mode=False, obj=shlex.join(["rankpolicy", *words]))
    except RankPolicyError as error:
        return _bad_input(error.on_command_line)
    except MissingDependencyError as error:
        return _bad_input(str(error))
    except OSError as error:
        return _bad_input(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
    except MemoryError:
        return _bad_input(_TOO_LARGE)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except Exception as error:
        if isinstance(error, RuntimeError) and "allocate memory" in str(error):  # torch's words
            return _bad_input(_TOO_LARGE)
        # Usage errors share no class that all versions of typer export; this method is what they have in common.
        if not hasattr(error, "format_message"):
            raise
        return _bad_input(_usage_error(error))
    if status == INTERRUPTED:
        note("interrupted.")
    return status if isinstance(status, int) else 0


def _usage_error(error: Any) -> str:
    """What is wrong with the options, in one line."""
    context: Any = getattr(error, "ctx", None)
    options = [] if context is None else context.command.params
    new_name = RENAMED.get(getattr(error, "option_name", ""), "")
    if any(new_name.split(",")[0] in option.opts for option in options):
        return f"{error.option_name} is now {new_name}."
    message = error.format_message().replace("?.", "?")
    if context is not None and message.startswith("Missing option"):
        config = ", on the command line or in --config" if any("--config" in option.opts for option in options) else ""
        message = f"{context.info_name} needs {error.param.opts[0]}{config}."
    verb = context.command_path if context is not None else "rankpolicy"
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} See: {verb} --help."


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    warnings.showwarning = _say_warning
    # LightGBM would load them, and with them scipy.stats, for its own estimators: half the time of a short command.
    hidden_from["lightgbm"] = ("sklearn", "pandas")
    sys.exit(run())


def _say_warning(message: Warning | str, *location: object, **options: object) -> None:
    """Print a warning in one line, without its place in the code."""
    note(f"warning: {' '.join(str(message).split())}")


def _bad_input(message: str) -> int:
    note(f"error: {' '.join(message.split())}")
    return BAD_INPUT
