"""rankpolicy clicks fit

With --out, every model is written as MODEL.json, and 'rankpolicy simulate --users MODEL.json' simulates such users. Counts by
(query, item, position) have no order to split by: without --test, models are measured on the data they were fitted to.

Parameters
----------
models : default all that the log allows
    Click models, comma-separated; see: rankpolicy methods.
test
    A log to measure on.
test_fraction
    Without --test: share of each query's sessions, the last ones, to measure on.
prior : A,B|empirical|none
    Beta prior of every parameter; empirical learns it.
iterations
    Highest number of EM iterations.
tolerance
    EM ends when an iteration gains less than this per session.
out
    A directory for the fitted models, fit.json, report.html and run.json.

Examples
--------
rankpolicy clicks fit log.tsv.gz --models dcm,ubm,dbn
rankpolicy clicks fit sessions.parquet --test-fraction 0.1 --prior empirical --out runs/clicks
rankpolicy clicks fit counts.csv --format counts --models pbm --json
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import facts_of_file, note, note_if_slow, show, show_table, styled
from rankpolicy.cli.support.run import Files, Run, RunWithoutSeed

if TYPE_CHECKING:
    from rich.text import Text

    from rankpolicy.clicks import ClickComparison, ClickLog
    from rankpolicy.reports.run_record import RunRecord

SECONDS_BETWEEN_NOTES = 5.0


def fit(
    log: options.Log,
    *,
    models: str | None = None,
    log_format: options.LogFormat,
    test: Path | None = None,
    test_fraction: float = 0.25,
    prior: str = "1,1",
    iterations: int = 200,
    tolerance: float = 1e-06,
    work: options.ParallelWork,
    out: Path | None = None,
    run: RunWithoutSeed,
) -> None:
    """Fit click models to a log and measure them on held-out sessions: log-likelihood, perplexity overall and by rank."""
    from rankpolicy.clicks import CLICK_MODELS, ClickFitSettings, compare_click_models
    from rankpolicy.declarations.setting_texts import parse_setting

    names = None
    if models is not None:
        names = options.names_in(models, "--models", such_as="click model, such as dcm,ubm")
        for name in names:
            CLICK_MODELS.named(name)
    chosen_prior = parse_setting(ClickFitSettings, "prior", prior)
    with note_if_slow(f"reading {log} ..."):
        all_sessions = log_format.read(log)
        held_out = None if test is None else log_format.read(test)
    if names is None:
        names = [name for name, kind in CLICK_MODELS.items() if all_sessions.has_sessions or not kind.needs_sessions]
    train, measured_on = _train_and_test(all_sessions, held_out, test_fraction, is_folder=log.is_dir())
    run.make_directory(out)
    with work.opened("serial") as executor:
        comparison = compare_click_models(
            names,
            train,
            measured_on,
            prior=chosen_prior,
            iterations=iterations,
            tolerance=tolerance,
            executor=executor,
            report_model=_progress(),
        )
    data = {"log": facts_of_file(log) | _facts(all_sessions)}
    if test is not None and held_out is not None:
        data["test"] = facts_of_file(test) | _facts(held_out)
    chosen = {"prior": prior, "iterations": iterations, "tolerance": tolerance}
    run.finish(
        comparison.to_dict(),
        data=data,
        settings=dict.fromkeys(comparison.models, chosen),
        show_results=lambda: _show(comparison, all_sessions),
        files=lambda record: _files(run, comparison, log.name, record),
    )


def _train_and_test(
    log: ClickLog, held_out: ClickLog | None, test_fraction: float, *, is_folder: bool
) -> tuple[ClickLog, ClickLog]:
    """The sessions to fit to and those to measure on."""
    if held_out is not None:
        return log, held_out
    if log.has_sessions and not is_folder:
        return log.split(test_fraction)
    note("counts have no order to split by: measured on the data fitted to. Give --test for a fair measure.")
    return log, log


def _files(run: Run, comparison: ClickComparison, log_name: str, record: RunRecord) -> Files:
    from rankpolicy.reports import figures
    from rankpolicy.reports.click_report import click_figure, click_page

    assert run.directory is not None
    for name, measured in comparison.models.items():
        measured.model.save(run.directory / f"{name}.json")
    lead = f"{', '.join(comparison.models)} on {log_name}."
    return {
        "report.html": click_page(comparison, record, title="Click models", lead=lead),
        "perplexity.svg": figures.file(click_figure(comparison), "svg"),
    }


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


def _show(comparison: ClickComparison, log: ClickLog) -> None:
    from rankpolicy.reports.click_report import log_likelihood_text, number

    unit = "sessions" if log.has_sessions else "items shown"
    num_ranks = max(len(measured.perplexity.by_rank) for measured in comparison.models.values())
    ranks = [f"@{rank}" for rank in range(1, min(num_ranks, 10) + 1)]
    best = min(comparison.models, key=lambda name: comparison.models[name].perplexity.overall)
    rows: list[list[str | Text]] = [
        [
            name,
            log_likelihood_text(comparison, name),
            styled(f"{measured.perplexity.overall:.4f}", "bold" if name == best else ""),
            number(measured.conditional_perplexity.overall),
            *(number(value, 3) for value in measured.perplexity.by_rank[:10]),
        ]
        for name, measured in comparison.models.items()
    ]
    show_table(("model", "log-likelihood", "perplexity", "given clicks", *ranks), rows)
    show(
        f"{comparison.num_test_sessions} {unit} to test on, fitted on {comparison.num_train_sessions}; log-likelihood: mean over them; "
        "perplexity: mean over ranks, clicks above not known",
        dim=True,
    )
    show(_facts_text(log), dim=True)
