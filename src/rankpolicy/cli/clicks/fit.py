"""rankpolicy clicks fit"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.options import (
    Address,
    ExecutorName,
    Jobs,
    Json,
    LogColumns,
    executor_from,
    log_columns,
)
from rankpolicy.cli.support.output import (
    Run,
    console,
    facts_of_file,
    made_directory,
    note,
    note_if_slow,
    print_json,
    write_results,
)
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.clicks import ClickComparison, ClickLog

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy clicks fit log.tsv.gz --models dcm,ubm,dbn

rankpolicy clicks fit sessions.parquet --test-fraction 0.1 --prior empirical --out runs/clicks

rankpolicy clicks fit counts.csv --format counts --models pbm --json
"""
SECONDS_BETWEEN_NOTES = 5.0


def fit(
    ctx: typer.Context,
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="Yandex rows (.gz, .bz2, .zst), .parquet or .csv, click tables too; or a folder of .parquet files, of any size.",
            show_default=False,
        ),
    ],
    models: Annotated[
        str | None,
        typer.Option(
            help="Click models, comma-separated; see: rankpolicy methods.", show_default="all that the log allows"
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="yandex|rows|sessions|counts|click-table",
            help="Format of the log.",
            show_default="recognised by its columns",
        ),
    ] = None,
    columns: LogColumns = None,
    test: Annotated[Path | None, typer.Option(help="A log to measure on.")] = None,
    test_fraction: Annotated[
        float, typer.Option(help="Without --test: share of each query's sessions, the last ones, to measure on.")
    ] = 0.25,
    prior: Annotated[
        str, typer.Option(metavar="A,B|empirical|none", help="Beta prior of every parameter; empirical learns it.")
    ] = "1,1",
    iterations: Annotated[int, typer.Option(help="Highest number of EM iterations.")] = 200,
    tolerance: Annotated[
        float, typer.Option(help="EM ends when an iteration gains less than this per session.")
    ] = 1e-6,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    address: Address = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip and count malformed rows.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="A directory for the fitted models, fit.json, report.html and run.json.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", hidden=True, help="Accepted by every verb; nothing here is random.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Fit click models to a log and measure them on held-out sessions: log-likelihood, perplexity overall and by rank.

    With --out, every model is written as MODEL.json, and 'rankpolicy simulate --users MODEL.json' simulates such users. Counts by
    (query, item, position) have no order to split by: without --test, models are measured on the data they were fitted to.
    """
    from rankpolicy.clicks import CLICK_MODELS, ClickFitSettings, compare_click_models, read_click_log
    from rankpolicy.declarations.setting_texts import parse_setting
    from rankpolicy.files import atomic_write
    from rankpolicy.reports import figures
    from rankpolicy.reports.click_report import click_figure, click_page
    from rankpolicy.reports.html import write_page

    run = Run(ctx)
    names = None if models is None else _parsed_names(models)
    chosen_prior = parse_setting(ClickFitSettings, "prior", prior)
    with note_if_slow(f"reading {log} ..."):
        whole = read_click_log(log, format=format, columns=log_columns(columns), lenient=lenient)
        held_out = (
            None if test is None else read_click_log(test, format=format, columns=log_columns(columns), lenient=lenient)
        )
    if names is None:
        names = [name for name, kind in CLICK_MODELS.items() if whole.has_sessions or not kind.needs_sessions]
    if held_out is not None:
        train, measured_on = whole, held_out
    elif whole.has_sessions and not log.is_dir():
        train, measured_on = whole.split(test_fraction)
    else:
        note("counts have no order to split by: measured on the data fitted to. Give --test for a fair measure.")
        train = measured_on = whole
    directory = None if out is None else made_directory(out, option="--out")
    with executor_from(executor, jobs, address, default="serial" if jobs is None else "processes") as chosen_executor:
        comparison = compare_click_models(
            names,
            train,
            measured_on,
            prior=chosen_prior,
            iterations=iterations,
            tolerance=tolerance,
            executor=chosen_executor,
            report_model=_progress(),
        )
    data = {"log": facts_of_file(log) | _facts(whole)}
    if test is not None and held_out is not None:
        data["test"] = facts_of_file(test) | _facts(held_out)
    chosen = {"prior": prior, "iterations": iterations, "tolerance": tolerance}
    record = run.record(seed=seed, data=data, settings=dict.fromkeys(comparison.models, chosen))
    document = comparison.to_dict() | {"run": record.to_dict()}
    if directory is not None:
        for name, measured in comparison.models.items():
            measured.model.save(directory / f"{name}.json")
        write_results(directory, "fit", document, record)
        lead = f"{', '.join(comparison.models)} on {log.name}."
        write_page(directory / "report.html", click_page(comparison, record, title="Click models", lead=lead))
        with atomic_write(directory / "perplexity.svg") as file:
            file.write(figures.file(click_figure(comparison), "svg"))
    if as_json:
        print_json(document)
        return
    _print_table(comparison, "sessions" if whole.has_sessions else "items shown")
    console().print(_facts_text(whole), style="dim", markup=False)
    if directory is not None:
        console().print(f"report {directory / 'report.html'}", markup=False)


def _parsed_names(models: str) -> list[str]:
    from rankpolicy.clicks import CLICK_MODELS

    names = list(dict.fromkeys(name for name in (text.strip() for text in models.split(",")) if name))
    if not names:
        raise RankPolicyError("--models must name at least one click model, such as dcm,ubm.")
    for name in names:
        CLICK_MODELS.named(name)
    return names


def _facts(log: ClickLog) -> dict[str, Any]:
    return {
        "queries": len(log.query_names),
        "items": len(log.item_names),
        "sessions": log.num_sessions if log.has_sessions else None,
        "clicks": log.num_clicks,
        "dropped_clicks": log.num_dropped_clicks,
        "repeated_clicks": log.num_repeated_clicks,
        "skipped_rows": log.num_skipped_rows,
    }


def _facts_text(log: ClickLog) -> str:
    shown = f"{log.num_sessions} {'sessions' if log.has_sessions else 'items shown'}"
    dropped = (
        f"; left out: {log.num_dropped_clicks} clicks on items not shown, {log.num_repeated_clicks} repeated ones"
        if log.num_dropped_clicks or log.num_repeated_clicks
        else ""
    )
    skipped = f", {log.num_skipped_rows} malformed rows skipped" if log.num_skipped_rows else ""
    return f"{shown}, {log.num_clicks} clicks, {len(log.query_names)} queries{dropped}{skipped}"


def _progress() -> Any:
    """A reporter of the progress of EM, every few seconds."""
    latest = time.perf_counter()

    def report(name: str, iteration: int, objective: float) -> None:
        nonlocal latest
        if time.perf_counter() - latest > SECONDS_BETWEEN_NOTES:
            latest = time.perf_counter()
            note(f"{name}: iteration {iteration}, log-likelihood with prior {objective:.6f} per session")

    return report


def _print_table(comparison: ClickComparison, unit: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from rankpolicy.reports.click_report import log_likelihood_text, number

    drawn = Table(box=SIMPLE_HEAD)
    drawn.add_column("model")
    num_ranks = max(len(measured.perplexity.by_rank) for measured in comparison.models.values())
    for name in (
        "log-likelihood",
        "perplexity",
        "given clicks",
        *(f"@{rank}" for rank in range(1, min(num_ranks, 10) + 1)),
    ):
        drawn.add_column(name, justify="right")
    best = min(comparison.models, key=lambda name: comparison.models[name].perplexity.overall)
    for name, measured in comparison.models.items():
        overall = f"{measured.perplexity.overall:.4f}"
        drawn.add_row(
            name,
            log_likelihood_text(comparison, name),
            f"[bold]{overall}[/bold]" if name == best else overall,
            number(measured.conditional_perplexity.overall),
            *(number(value, 3) for value in measured.perplexity.by_rank[:10]),
        )
    out = console()
    out.print(drawn)
    out.print(
        f"{comparison.num_test_sessions} {unit} to test on, fitted on {comparison.num_train_sessions}; log-likelihood: mean over them; "
        "perplexity: mean over ranks, clicks above not known",
        style="dim",
    )
