"""rankpolicy clicks: the group of verbs about click logs."""

from __future__ import annotations

import typer

from rankpolicy.cli.main import CONTEXT, group_of
from rankpolicy.cli.verbs import CLICKS_VERBS

app = typer.Typer(
    cls=group_of(CLICKS_VERBS),
    help="Fit click models to a log, and estimate the position bias in it.",
    add_completion=False,
    rich_markup_mode="rich",
    context_settings=CONTEXT,
)


@app.callback(invoke_without_command=True)
def _without_verb(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
