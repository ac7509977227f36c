"""The entry point of the command line: it runs a verb, and turns bad input into one line on stderr.

The module of a verb is imported when the verb is run: help, version and shell completion stay fast.
"""

from __future__ import annotations

import importlib
import inspect
import shlex
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from rankpolicy.cli.support.output import note
from rankpolicy.cli.support.wording import for_command_line
from rankpolicy.cli.verbs import VERBS, Verb
from rankpolicy.optional import hidden_from
from rankpolicy.types import MissingDependencyError, RankPolicyError
from rankpolicy.writing import inputs_kept

BAD_INPUT = 2
INTERRUPTED = 130
CONTEXT = {"help_option_names": ["-h", "--help"]}


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


app = typer.Typer(
    cls=group_of(VERBS),
    name="rankpolicy",
    help="Learn ranking policies, distributions over orderings of items for a query, and measure them.",
    epilog="Start with: [bold]rankpolicy demo[/bold]",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)


def _print_version(asked: bool) -> None:
    if asked:
        from rankpolicy import __version__

        typer.echo(f"rankpolicy {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _without_verb(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


_TOO_LARGE = "this needs more memory than there is. Choose smaller settings, or less data."


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments
        What follows ``rankpolicy``; None takes the arguments of the process.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with inputs_kept():
            status = app(given, prog_name="rankpolicy", standalone_mode=False, obj=shlex.join(["rankpolicy", *given]))
    except (RankPolicyError, MissingDependencyError) as error:
        return _bad_input(for_command_line(str(error)))
    except OSError as error:
        return _bad_input(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
    except MemoryError:
        return _bad_input(_TOO_LARGE)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except Exception as error:
        # Usage errors share no class that all versions of typer export; this method is what they have in common.
        if isinstance(error, RuntimeError) and "allocate memory" in str(error):  # torch's words
            return _bad_input(_TOO_LARGE)
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        verb = context.command_path if context is not None else "rankpolicy"
        message = error.format_message().replace("?.", "?")
        return _bad_input(f"{message}{'' if message.endswith(('.', '?')) else '.'} See: {verb} --help.")
    if status == INTERRUPTED:
        note("interrupted.")
    return status if isinstance(status, int) else 0


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    warnings.showwarning = _say_warning
    # LightGBM would load them, and with them scipy.stats, for its own estimators: half the time of a short command.
    hidden_from["lightgbm"] = ("sklearn", "pandas")
    sys.exit(run())


def _say_warning(message: Warning | str, *where: object, **more: object) -> None:
    """Print a warning in one line, without its place in the code."""
    note(f"warning: {' '.join(str(message).split())}")


def _bad_input(message: str) -> int:
    note(f"error: {' '.join(message.split())}")
    return BAD_INPUT
