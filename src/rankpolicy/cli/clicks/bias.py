"""rankpolicy clicks bias"""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankpolicy.cli.support.options import (
    Address,
    ExecutorName,
    Jobs,
    Json,
    LogColumns,
    Seed,
    executor_from,
    log_columns,
)
from rankpolicy.cli.support.output import (
    Run,
    console,
    facts_of_file,
    made_directory,
    note_if_slow,
    print_json,
    write_results,
)
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.clicks import PositionBias

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy clicks bias log.tsv.gz

rankpolicy clicks bias sessions.parquet --method all-pairs,em,dual --out runs/bias

rankpolicy clicks bias counts.csv --method all-pairs,pivot --resamples 500 --json
"""


def bias(
    ctx: typer.Context,
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="Yandex rows (.gz, .bz2, .zst), .parquet or .csv, click tables too; or a folder of .parquet files, of any size.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str,
        typer.Option("--method", help="Methods, comma-separated; see: rankpolicy methods."),
    ] = "all-pairs",
    click_model: Annotated[
        str | None, typer.Option(help="The click model of the method click-model.", show_default="pbm")
    ] = None,
    resamples: Annotated[int, typer.Option(min=0, help="Bootstrap resamples for the intervals; 0 for none.")] = 200,
    resample: Annotated[
        str | None,
        typer.Option(
            metavar="sessions|queries|pairs",
            help="Unit of the bootstrap.",
            show_default="sessions; queries where the log holds counts",
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="yandex|rows|sessions|counts|click-table",
            help="Format of the log.",
            show_default="recognised by its columns",
        ),
    ] = None,
    columns: LogColumns = None,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    address: Address = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip and count malformed rows.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="A directory for bias.json, report.html, propensities.csv, propensities.svg and run.json."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Estimate how likely users examine each rank, relative to the first, with bootstrap intervals.

    The methods pivot, adjacent, all-pairs, em and dual need items that were shown at several ranks; randomised needs a log whose order
    was drawn at random. Methods that need more than a log holds (segments, query features, swaps) are available in Python only.
    """
    from rankpolicy.clicks import estimate_position_bias, read_click_log
    from rankpolicy.files import atomic_write
    from rankpolicy.reports import figures
    from rankpolicy.reports.bias_report import position_bias_figure, position_bias_page
    from rankpolicy.reports.html import write_page

    run = Run(ctx)
    names = _parsed_methods(method)
    if click_model is not None and "click-model" not in names:
        raise RankPolicyError(
            "--click-model is for the method click-model; add it to --method, or leave the option out."
        )
    directory = None if out is None else made_directory(out, option="--out")
    with note_if_slow(f"reading {log} ..."):
        # Equal sessions are merged and counted: the same intervals in less time.
        whole = read_click_log(log, format=format, columns=log_columns(columns), lenient=lenient).collapsed()
    biases = {}
    with executor_from(executor, jobs, address, default="serial" if jobs is None else "processes") as chosen_executor:
        for name in names:
            with note_if_slow(f"{name} with {resamples} resamples ..."):
                biases[name] = estimate_position_bias(
                    whole,
                    method=name,
                    click_model=click_model if name == "click-model" else None,
                    resample=resample,
                    num_resamples=resamples,
                    level=level,
                    random_state=seed,
                    executor=chosen_executor,
                )
    facts = facts_of_file(log) | {"queries": len(whole.query_names), "items": len(whole.item_names)}
    chosen = {"resamples": resamples, "resample": resample, "level": level, "click_model": click_model}
    record = run.record(seed=seed, data={"log": facts}, settings=dict.fromkeys(biases, chosen))
    document = {"methods": {name: found.to_dict() for name, found in biases.items()}, "run": record.to_dict()}
    unit = "sessions" if whole.has_sessions else "items shown"
    if directory is not None:
        write_results(directory, "bias", document, record)
        with atomic_write(directory / "propensities.csv") as file:
            file.write(bias_table_csv(biases).encode())
        with atomic_write(directory / "propensities.svg") as file:
            file.write(figures.file(position_bias_figure(biases), "svg"))
        lead = f"{', '.join(biases)} on {log.name}."
        page = position_bias_page(biases, record, title="Position bias", lead=lead, unit=unit)
        write_page(directory / "report.html", page)
    if as_json:
        print_json(document)
        return
    _print_table(biases, unit)
    if directory is not None:
        console().print(f"report {directory / 'report.html'}", markup=False)


def bias_table_csv(biases: dict[str, PositionBias]) -> str:
    """A table with one row per method and rank; cells are empty where nothing is known."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["method", "rank", "propensity", "low", "high", "click_through"])
    for name, found in biases.items():
        columns = zip(found.propensities, *found.intervals.T, found.click_through, strict=True)
        for rank, numbers in enumerate(columns, 1):
            rows.writerow([name, rank, *("" if math.isnan(value) else repr(float(value)) for value in numbers)])
    return text.getvalue()


def _parsed_methods(text: str) -> list[str]:
    from rankpolicy.clicks.position_bias.members import POSITION_BIAS_METHODS

    names = list(dict.fromkeys(name for name in (part.strip() for part in text.split(",")) if name))
    if not names:
        raise RankPolicyError("--method must name at least one method, such as all-pairs,em.")
    for name in names:
        needs = POSITION_BIAS_METHODS.named(name).needs
        if needs is not None:
            raise RankPolicyError(
                f"the method {name} needs {needs}, which a log does not hold: choose another --method; see: rankpolicy methods."
            )
    return names


def _print_table(biases: dict[str, PositionBias], unit: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    first = next(iter(biases.values()))
    drawn = Table(box=SIMPLE_HEAD)
    drawn.add_column("rank", justify="right")
    drawn.add_column("click-through", justify="right")
    for name in biases:
        drawn.add_column(name, justify="right")
    for rank, click_through in enumerate(first.click_through):
        cells = []
        for found in biases.values():
            low, high = found.intervals[rank]
            interval = "" if math.isnan(low) else f" [{low:.3f}, {high:.3f}]"
            cells.append(_number(found.propensities[rank]) + interval)
        drawn.add_row(str(rank + 1), _number(click_through / first.click_through[0]), *cells)
    out = console()
    out.print(drawn, markup=False)
    intervals = f"; {first.level:.0%} bootstrap intervals over {first.resampled}" if first.num_resamples else ""
    out.print(
        f"relative to the first rank{intervals}; {first.num_sessions} {unit}, {first.num_clicks} clicks, "
        f"{first.num_swap_pairs} (query, item) pairs shown at several ranks",
        style="dim",
    )


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
