"""rankpolicy compare"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.chosen_methods import Variant, parse_assignments, parse_methods, settings_of_methods
from rankpolicy.cli.support.comparison_tables import print_comparison
from rankpolicy.cli.support.options import (
    Empty,
    Gain,
    Json,
    MaxLabel,
    Metrics,
    RelevantFrom,
    Seed,
    Set,
    Ties,
    conventions_from,
)
from rankpolicy.cli.support.output import Run, console, made_directory, note, print_json, with_defaults, write_results

if TYPE_CHECKING:
    from rankpolicy.data import Fold
    from rankpolicy.evaluation import MetricTable

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy compare --data MQ2008 --methods pg-rank,lambdamart,listnet,regression --metrics ndcg@10,map

rankpolicy compare --data judged.txt.gz --folds 5 --methods pg-rank,lambdamart --out runs/judged

rankpolicy compare --data MQ2008 --methods pg-rank,listnet --no-tune --set pg-rank.epochs=50 --json

rankpolicy compare --data MQ2008 --methods pg-rank --variant short=pg-rank --set short.epochs=20
"""


def compare(
    ctx: typer.Context,
    data: Annotated[
        Path, typer.Option(help="A directory with Fold1, Fold2, ..., or one file to be split.", show_default=False)
    ],
    methods: Annotated[
        str, typer.Option(help="Methods, comma-separated; see: rankpolicy methods.")
    ] = "pg-rank,lambdamart",
    variant: Variant = None,
    metrics: Metrics = "ndcg@10,map",
    folds: Annotated[int, typer.Option(min=2, help="Number of folds that one file is split into, by query.")] = 5,
    tune: Annotated[
        bool, typer.Option("--tune/--no-tune", help="Choose each method's settings on validation data.")
    ] = True,
    settings: Set = None,
    gain: Gain = "exp2",
    empty: Empty = "0",
    relevant_from: RelevantFrom = 1.0,
    max_label: MaxLabel = 4.0,
    ties: Ties = "expected",
    out: Annotated[Path | None, typer.Option(help="A directory for compare.json, report.html and run.json.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn and measure several methods on the same folds: means, paired significance, one table.

    Every method is fitted on a fold's training data, chooses its settings on the fold's validation data and is measured on its test data.

    --set epochs=50 is for every method that has this setting, --set pg-rank.epochs=50 for one method. To run one method with two
    settings, give it a second name: --variant short=pg-rank --set short.epochs=20.
    """
    from rankpolicy.experiments import compare_rankers
    from rankpolicy.metrics import parse_metrics
    from rankpolicy.rankers import ranker_class_named
    from rankpolicy.reports.comparison_report import comparison_page
    from rankpolicy.reports.html import write_page

    run = Run(ctx)
    conventions = conventions_from(gain, empty, relevant_from, max_label, ties)
    measures = parse_metrics(metrics, conventions)
    named = parse_methods(methods, variant, ranker_class_named)
    by_method = settings_of_methods(named.classes, parse_assignments(settings or []))
    directory = None if out is None else made_directory(out, option="--out")
    chosen_folds = _folds(data, folds, seed)

    def report_fit(method: str, fold: str, table: MetricTable) -> None:
        numbers = ", ".join(f"{name} {mean:.4f}" for name, mean in table.means.items())
        note(f"{fold} {method}: {numbers} ({run.seconds:.0f} s)")

    comparison = compare_rankers(
        chosen_folds,
        named.with_settings(by_method),
        measures,
        conventions=conventions,
        tune=tune,
        random_state=seed,
        report_fit=report_fit,
    )
    record = run.record(
        seed=seed,
        data=facts_of_folds(chosen_folds, str(data)),
        settings={name: with_defaults(named.classes[name], given) for name, given in by_method.items()},
    )
    document = comparison.to_dict() | {"tuned": tune, "run": record.to_dict()}
    if directory is not None:
        write_results(directory, "compare", document, record)
        lead = f"{', '.join(comparison.methods)} on {data.name}."
        write_page(
            directory / "report.html", comparison_page(comparison, record, title="Comparison of rankers", lead=lead)
        )
    if as_json:
        print_json(document)
        return
    print_comparison(comparison)
    if directory is not None:
        console().print(f"report {directory / 'report.html'}", markup=False)


def facts_of_folds(folds: list[Fold], path: str) -> dict[str, dict[str, Any]]:
    """The data of each part of each fold, as a run record describes it."""
    from rankpolicy.data.fingerprints import fingerprint

    parts = {f"{fold.name} {part}": getattr(fold, part) for fold in folds for part in ("train", "valid", "test")}
    return {
        name: {"path": path, "sha256": fingerprint(part), "queries": part.num_queries, "items": part.num_items}
        for name, part in parts.items()
    }


def _folds(data: Path, num_folds: int, seed: int) -> list[Fold]:
    """The folds of a directory, or of one file: every query is tested once, a quarter of the others is for validation."""
    from rankpolicy.data import Fold, k_fold, read_dataset, read_folds, split_queries

    if data.is_dir():
        return read_folds(data)
    folds = []
    for number, (others, test) in enumerate(k_fold(read_dataset(data), num_folds, random_state=seed), 1):
        train, valid = split_queries(others, (0.75, 0.25), random_state=seed)
        folds.append(Fold(name=f"Fold{number}", train=train, valid=valid, test=test))
    return folds
