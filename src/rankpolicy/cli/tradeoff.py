"""rankpolicy tradeoff"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.options import Json, Seed, Set
from rankpolicy.cli.support.output import console, made_directory, note, print_json
from rankpolicy.cli.support.settings import parse_assignments, settings_of_methods
from rankpolicy.cli.support.tradeoff_data import TradeoffData, read_tradeoff_data
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.experiments.tradeoff_curves import SeedValue, Tradeoff

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy tradeoff --data synthetic

rankpolicy tradeoff --data synthetic --methods fair-pg-rank,fair-pg-rank:equal --set fair-pg-rank:equal.parity=1

rankpolicy tradeoff --data german.data --methods fair-pg-rank,fair-lp --seeds 5 --out runs/german

rankpolicy tradeoff --data train.parquet --test test.parquet --groups gender --strengths 0,0.1,1,10

rankpolicy tradeoff --data train.txt --groups feature:3 --fairness individual --methods fair-pg-rank,pg-rank
"""


def tradeoff(
    ctx: typer.Context,
    data: Annotated[
        str,
        typer.Option(
            metavar="synthetic|FILE",
            help="'synthetic', german.data of the UCI German Credit set, or training data: .parquet or LETOR text.",
            show_default=False,
        ),
    ],
    test: Annotated[Path | None, typer.Option(help="Test data, in the format of --data.")] = None,
    test_fraction: Annotated[
        float, typer.Option(help="Share of the queries to test on where there is no --test; drawn anew for each seed.")
    ] = 0.3,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|feature:NAME",
            help="The protected group: a column, or the values of a feature (by name or number from 1).",
        ),
    ] = None,
    fairness: Annotated[str, typer.Option(metavar="group|individual", help="Fair to what.")] = "group",
    methods: Annotated[str, typer.Option(help="Methods, comma-separated.")] = "fair-pg-rank,fair-lp,deltr",
    strengths: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[METHOD:]NUMBERS",
            help="How strongly fairness counts: 0,1,10 for all methods, deltr:0,100 for one; may be repeated.",
        ),
    ] = None,
    bounds: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Highest disparities, for methods that can be bound.")
    ] = None,
    reward: Annotated[
        str, typer.Option(help="The utility: rank weights times item values, as ndcg@10, dcg, p@5.")
    ] = "ndcg",
    merit: Annotated[str, typer.Option(metavar="identity|exp2|binary|log1p", help="What a label merits.")] = "identity",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from --seed on.")] = 1,
    settings: Set = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; as many as there are cores unless told.")] = None,
    out: Annotated[Path, typer.Option(help="A directory for the figure, the numbers and report.html.")] = Path(
        "runs/tradeoff"
    ),
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """What fairness costs: utility against disparity of exposure for several methods, a curve each.

    Every method is fitted at every strength and measured on held-out queries, exactly. Into --out go tradeoff.png, .svg, .csv and .json,
    report.html and run.json. A setting as deltr.epochs=50 is for one method, as epochs=50 for all that have it.
    """
    from rankpolicy.experiments.tradeoff import sweep_tradeoff
    from rankpolicy.optional import require
    from rankpolicy.rankers import ranker_class_named
    from rankpolicy.reports.run_record import RunRecord

    started, clock = datetime.now(UTC), time.perf_counter()
    classes = {name: ranker_class_named(name) for name in (text.strip() for text in methods.split(",")) if name}
    by_method = settings_of_methods(classes, parse_assignments(settings or []))
    chosen_strengths = strengths_by_method(strengths or [], list(classes))
    chosen_bounds = None if bounds is None else _numbers(bounds, "--bounds")
    directory = made_directory(out, option="--out")
    require("matplotlib", "The figure of a trade-off")
    chosen = read_tradeoff_data(
        data, test, groups, fairness=fairness, test_fraction=test_fraction, seeds=range(seed, seed + seeds)
    )
    for of_method in by_method.values():
        if "protected_group" in of_method:
            of_method["protected_group"] = chosen.group_named(of_method["protected_group"])

    def report_point(done: int, total: int, what: str, value: SeedValue) -> None:
        numbers = f"{reward} {value.utility:.4f}, disparity {value.disparity:.5f}"
        note(f"{done}/{total} {what} seed {value.seed}: {numbers} ({time.perf_counter() - clock:.0f} s)")

    found = sweep_tradeoff(
        chosen.trains,
        chosen.tests,
        by_method,
        strengths=chosen_strengths,
        bounds=chosen_bounds,
        seeds=list(range(seed, seed + seeds)),
        reward=reward,
        fairness=fairness,
        merit=merit,
        jobs=jobs,
        report_point=report_point,
    )
    record = RunRecord(
        command=ctx.obj,
        seed=seed,
        data=chosen.facts(),
        started=started.isoformat(timespec="seconds"),
        duration_seconds=round(time.perf_counter() - clock, 3),
        details={"settings": found.to_json()["settings"]},
    )
    document = found.to_json() | {"run": record.to_json()}
    _write(directory, found, chosen, record, document)
    if as_json:
        print_json(document)
        return
    _print(found)
    console().print(f"figure {directory / 'tradeoff.png'}\nreport {directory / 'report.html'}", markup=False)


def strengths_by_method(texts: list[str], methods: list[str]) -> dict[str, list[float]] | None:
    """Strengths of each method; what is said of one goes before what is said of all.

    >>> strengths_by_method(["deltr:0,100", "0,1"], ["fair-pg-rank", "deltr"])
    {'fair-pg-rank': [0.0, 1.0], 'deltr': [0.0, 100.0]}
    """
    from rankpolicy.types import unknown_name

    strengths: dict[str, list[float]] = {}
    for text in sorted(texts, key=lambda text: ":" in text):
        method, colon, numbers = text.rpartition(":")
        if colon and method not in methods:
            raise RankPolicyError(unknown_name("method in --strengths:", method, methods))
        strengths |= dict.fromkeys([method] if colon else methods, _numbers(numbers, "--strengths"))
    return strengths or None


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise RankPolicyError(f"{option} must be numbers with commas between, such as 0,0.1,1; got {text!r}.") from None


def _write(directory: Path, found: Tradeoff, chosen: TradeoffData, record: Any, document: dict[str, Any]) -> None:
    """Every file whole or not at all."""
    from rankpolicy.files import atomic_write
    from rankpolicy.reports import figures
    from rankpolicy.reports.html import write_page
    from rankpolicy.reports.run_record import write_json
    from rankpolicy.reports.tradeoff_report import tradeoff_csv, tradeoff_figure, tradeoff_page

    # The numbers first: they took long, and nothing that goes wrong with a figure should lose them.
    write_json(directory / "tradeoff.json", document)
    write_json(directory / "run.json", record.to_json())
    with atomic_write(directory / "tradeoff.csv") as file:
        file.write(tradeoff_csv(found).encode())
    drawn = tradeoff_figure(found)
    for format in ("png", "svg"):
        with atomic_write(directory / f"tradeoff.{format}") as file:
            file.write(figures.file(drawn, format))
    page = tradeoff_page(
        found,
        chosen.tests[0],
        record,
        title="What fairness costs",
        lead=f"{', '.join(found.methods)} on {Path(chosen.name).name}.",
    )
    write_page(directory / "report.html", page)


def _print(found: Tradeoff) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from rankpolicy.reports.tradeoff_report import mean_text

    drawn = Table(box=SIMPLE_HEAD)
    for name in ("method", "set"):
        drawn.add_column(name)
    for name in (found.reward, f"{found.fairness} disparity", "Pareto front"):
        drawn.add_column(name, justify="right")
    on_front = found.pareto
    for point in found.points:
        mean, deviation = point.mean, point.standard_deviation
        drawn.add_row(
            point.method,
            point.label,
            mean_text(mean.utility, deviation and deviation.utility, 4),
            mean_text(mean.disparity, deviation and deviation.disparity, 5),
            "yes" if point in on_front else "",
        )
    out = console()
    out.print(drawn)
    volumes = ", ".join(f"{method} {volume:.6f}" for method, volume in found.hypervolume.items())
    reference = f"utility {found.reference.utility:.4f}, disparity {found.reference.disparity:.5f}"
    out.print(f"hypervolume (more is better; reference {reference}): {volumes}", style="dim")
    for point in found.points:
        for text in point.notes:
            out.print(f"{point.method} {point.label}: {text}", style="dim", markup=False)
