"""rankpolicy service: the group of verbs about the database of a service."""

from __future__ import annotations

import typer

from rankpolicy.cli.main import CONTEXT, group_of
from rankpolicy.cli.verbs import SERVICE_VERBS

app = typer.Typer(
    cls=group_of(SERVICE_VERBS),
    help="Keys of a service, what it serves, what its log says about candidates, and proof of what it learned.",
    add_completion=False,
    rich_markup_mode="rich",
    context_settings=CONTEXT,
)


@app.callback(invoke_without_command=True)
def _without_verb(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
