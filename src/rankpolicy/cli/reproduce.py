"""rankpolicy reproduce"""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.options import Json, Seed
from rankpolicy.cli.support.output import console, made_directory, note, print_json
from rankpolicy.types import RankPolicyError, unknown_name

if TYPE_CHECKING:
    from reproductions import Outcome

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy reproduce --list

rankpolicy reproduce fair-pg-rank/figure1 --out runs/figure1

rankpolicy reproduce fair-pg-rank/table1 --data DATA --smoke --json
"""

A_CLAIM_FAILED = 1


def reproduce(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="PAPER/TABLE", help="What to run; see --list.", show_default=False)
    ] = "",
    show_list: Annotated[bool, typer.Option("--list", help="List what can be run, and stop.")] = False,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Little data, the same code: seconds, and no proof; claims do not count.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="The folder of the datasets.", envvar="RANKPOLICY_DATA", show_envvar=True, show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A directory for the table and figures.", show_default="runs/PAPER/TABLE")
    ] = None,
    device: Annotated[str, typer.Option(help="Where networks are trained: cpu or cuda.")] = "cpu",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Run a table or figure of a paper again: ours beside the paper's, and its claims as statements that can fail.

    The exit status is 1 when a claim does not hold.
    """
    from rankpolicy.rankers.networks.network import usable_device
    from rankpolicy.reports.run_record import RunRecord, write_json

    make_reproductions_importable()
    from reproductions import TARGETS, Setup

    if show_list:
        _print_list(as_json)
        return
    if not target:
        raise RankPolicyError(f"name what to run, one of: {', '.join(TARGETS)}.")
    if target not in TARGETS:
        raise RankPolicyError(unknown_name("target", target, TARGETS))
    usable_device(device)
    started, clock = datetime.now(UTC), time.perf_counter()
    directory = made_directory(out or Path("runs") / target, option="--out")
    setup = Setup(
        data=data,
        seed=seed,
        is_smoke=smoke,
        device=device,
        report=lambda text: note(f"{text} ({time.perf_counter() - clock:.0f} s)"),
    )
    for dataset in TARGETS[target].datasets:
        setup.folder(dataset)
    outcome = TARGETS[target].run(setup)
    record = RunRecord(
        command=ctx.obj,
        seed=seed,
        data={},
        started=started.isoformat(timespec="seconds"),
        duration_seconds=round(time.perf_counter() - clock, 3),
    )
    document = {"target": target, **outcome.to_json(), "smoke": smoke, "run": record.to_json()}
    _write_rows(directory / "rows.csv", outcome.rows)
    for name, figure in outcome.figures.items():
        _write_figure(directory / name, figure)
    write_json(directory / "result.json", document)
    if as_json:
        print_json(document)
    else:
        _print_outcome(target, outcome)
        console().print(f"written to {directory}", markup=False)
    if outcome.failed and not smoke:
        raise typer.Exit(A_CLAIM_FAILED)


def make_reproductions_importable() -> None:
    """The papers' tables stand in the repository beside the package, not in the wheel; refuse where they are not there."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / "reproductions" / "__init__.py").is_file():
        raise RankPolicyError(
            "the reproductions of the papers are not part of the installed package: clone the repository and install it with "
            "'pip install -e .'."
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))


def _print_list(as_json: bool) -> None:
    from reproductions import TARGETS

    if as_json:
        targets = [{"target": t.name, "what": t.what, "datasets": list(t.datasets)} for t in TARGETS.values()]
        print_json({"targets": targets})
        return
    from rich.table import Table

    table = Table("target", "what", "reads", box=None)
    for target in TARGETS.values():
        table.add_row(target.name, target.what, ", ".join(target.datasets) or "nothing")
    console().print(table)


def _print_outcome(target: str, outcome: Outcome) -> None:
    from rich.table import Table

    table = Table(*_columns(outcome.rows), title=target, box=None)
    for row in outcome.rows:
        table.add_row(*(_shown(row.get(column)) for column in _columns(outcome.rows)))
    console().print(table)
    claims = Table("claim", "paper", "ours", "holds", box=None, title="claims")
    for claim in outcome.claims:
        claims.add_row(claim.claim, claim.paper, claim.ours, "yes" if claim.holds else "[bold red]no[/bold red]")
    console().print(claims)


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row))


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    from rankpolicy.files import atomic_write

    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with atomic_write(path) as file:
        file.write(text.getvalue().encode())


def _write_figure(path: Path, figure: Any) -> None:
    from rankpolicy.files import atomic_write
    from rankpolicy.reports import figures

    for format in ("png", "svg"):
        with atomic_write(path.with_suffix(f".{format}")) as file:
            file.write(figures.file(figure, format))
