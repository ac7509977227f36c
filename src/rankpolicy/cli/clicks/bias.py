"""rankpolicy clicks bias

The methods pivot, adjacent, all-pairs, em and dual need items that were shown at several ranks; randomised needs a log whose order
was drawn at random. Methods that need more than a log holds (segments, query features, swaps) are available in Python only.

Parameters
----------
method
    Methods, comma-separated; see: rankpolicy methods.
click_model : default pbm
    The click model of the method click-model.
resamples
    Bootstrap resamples for the intervals; 0 for none.
resample : sessions|queries|pairs, default sessions; queries where the log holds counts
    Unit of the bootstrap.
level
    Confidence level of the intervals.
out
    A directory for bias.json, report.html, propensities.csv, propensities.svg and run.json.

Examples
--------
rankpolicy clicks bias log.tsv.gz
rankpolicy clicks bias sessions.parquet --method all-pairs,em,dual --out runs/bias
rankpolicy clicks bias counts.csv --method all-pairs,pivot --resamples 500 --json
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import csv_text, facts_of_file, note_if_slow, show, show_table
from rankpolicy.cli.support.run import Files, Run
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.clicks import PositionBias
    from rankpolicy.reports.run_record import RunRecord


def bias(
    log: options.Log,
    *,
    method: str = "all-pairs",
    click_model: str | None = None,
    resamples: Annotated[int, typer.Option(min=0)] = 200,
    resample: str | None = None,
    level: float = 0.95,
    log_format: options.LogFormat,
    work: options.ParallelWork,
    out: Path | None = None,
    run: Run,
) -> None:
    """Estimate how likely users examine each rank, relative to the first, with bootstrap intervals."""
    from rankpolicy.clicks import estimate_position_bias

    names = _methods(method)
    if click_model is not None and "click-model" not in names:
        raise RankPolicyError(
            "--click-model is for the method click-model; add it to --method, or leave the option out."
        )
    run.make_directory(out)
    with note_if_slow(f"reading {log} ..."):
        # Equal sessions are merged and counted: the same intervals in less time.
        sessions = log_format.read(log).collapsed()
    biases = {}
    with work.opened("serial") as executor:
        for name in names:
            with note_if_slow(f"{name} with {resamples} resamples ..."):
                biases[name] = estimate_position_bias(
                    sessions,
                    method=name,
                    click_model=click_model if name == "click-model" else None,
                    resample=resample,
                    num_resamples=resamples,
                    level=level,
                    random_state=run.seed,
                    executor=executor,
                )
    facts = facts_of_file(log) | {"queries": len(sessions.query_names), "items": len(sessions.item_names)}
    chosen = {"resamples": resamples, "resample": resample, "level": level, "click_model": click_model}
    unit = "sessions" if sessions.has_sessions else "items shown"
    run.finish(
        {"methods": {name: estimate.to_dict() for name, estimate in biases.items()}},
        data={"log": facts},
        settings=dict.fromkeys(biases, chosen),
        show_results=lambda: _show(biases, unit),
        files=lambda record: _files(biases, record, lead=f"{', '.join(biases)} on {log.name}.", unit=unit),
    )


def _methods(text: str) -> list[str]:
    from rankpolicy.clicks.position_bias.members import POSITION_BIAS_METHODS

    names = options.names_in(text, "--method", such_as="method, such as all-pairs,em")
    for name in names:
        needs = POSITION_BIAS_METHODS.named(name).needs
        if needs is not None:
            raise RankPolicyError(
                f"the method {name} needs {needs}, which a log does not hold: choose another --method; see: rankpolicy methods."
            )
    return names


def _files(biases: dict[str, PositionBias], record: RunRecord, *, lead: str, unit: str) -> Files:
    from rankpolicy.reports import figures
    from rankpolicy.reports.bias_report import position_bias_figure, position_bias_page

    return {
        "propensities.csv": bias_table_csv(biases),
        "propensities.svg": figures.file(position_bias_figure(biases), "svg"),
        "report.html": position_bias_page(biases, record, title="Position bias", lead=lead, unit=unit),
    }


def bias_table_csv(biases: dict[str, PositionBias]) -> str:
    """A table with one row per method and rank; cells are empty where nothing is known."""
    rows = []
    for name, bias in biases.items():
        columns = zip(bias.propensities, *bias.intervals.T, bias.click_through, strict=True)
        for rank, numbers in enumerate(columns, 1):
            rows.append([name, rank, *("" if math.isnan(value) else repr(float(value)) for value in numbers)])
    return csv_text(["method", "rank", "propensity", "low", "high", "click_through"], rows)


def _show(biases: dict[str, PositionBias], unit: str) -> None:
    first = next(iter(biases.values()))
    rows = []
    for rank, click_through in enumerate(first.click_through):
        cells = []
        for bias in biases.values():
            low, high = bias.intervals[rank]
            interval = "" if math.isnan(low) else f" [{low:.3f}, {high:.3f}]"
            cells.append(_number(bias.propensities[rank]) + interval)
        rows.append([str(rank + 1), _number(click_through / first.click_through[0]), *cells])
    show_table(("rank", "click-through", *biases), rows, numbers_from=0)
    intervals = f"; {first.level:.0%} bootstrap intervals over {first.resampled}" if first.num_resamples else ""
    show(
        f"relative to the first rank{intervals}; {first.num_sessions} {unit}, {first.num_clicks} clicks, "
        f"{first.num_swap_pairs} (query, item) pairs shown at several ranks",
        dim=True,
    )


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
