"""rankpolicy compare"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.method_settings import Variant, parse_assignments, parse_methods, settings_of_methods
from rankpolicy.cli.support.comparison_tables import print_comparison
from rankpolicy.cli.support.options import (
    Address,
    Empty,
    ExecutorName,
    Gain,
    Group,
    Ignore,
    Jobs,
    Json,
    Label,
    MaxLabel,
    Metrics,
    Qid,
    RelevantFrom,
    Seed,
    Set,
    Ties,
    columns_from,
    conventions_from,
    executor_from,
)
from rankpolicy.cli.support.output import (
    Run,
    console,
    facts_of_file,
    made_directory,
    note,
    print_json,
    with_defaults,
    write_results,
)
from rankpolicy.cli.support.per_query import check_per_query, write_per_query
from rankpolicy.types import RankPolicyError, unknown_name

if TYPE_CHECKING:
    from rankpolicy.data import Fold
    from rankpolicy.evaluation import MetricTable

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy compare --data MQ2008 --methods pg-rank,lambdamart,listnet,regression --metrics ndcg@10,map

rankpolicy compare --data judged.txt.gz --folds 5 --methods pg-rank,lambdamart --out runs/judged

rankpolicy compare --data MQ2008 --methods pg-rank,listnet --no-tune --set pg-rank.epochs=50 --json

rankpolicy compare --data MQ2008 --methods pg-rank --variant short=pg-rank --set short.epochs=20

rankpolicy compare --data MQ2008 --methods pg-rank,listnet --run bm25=bm25.trec --baseline bm25 --per-query queries.csv

rankpolicy compare --data items.csv --qid search_id --label grade --ignore title,url
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
    run_files: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="NAME=FILE",
            help="A TREC run of another ranker that takes part: it ranks every item of every test query. May be repeated.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A method or run that all others are compared with; p-values are adjusted for these comparisons only.",
            show_default="all pairs are compared",
        ),
    ] = None,
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
    qid: Qid = "qid",
    label: Label = "label",
    group: Group = None,
    ignore: Ignore = None,
    jobs: Jobs = None,
    executor: ExecutorName = None,
    address: Address = None,
    per_query: Annotated[
        Path | None,
        typer.Option(help="Write the metrics of every method on every test query: .csv or .parquet."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A directory for compare.json, report.html and run.json.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn and measure several methods on the same folds: means, paired significance, one table.

    Every method is fitted on a fold's training data, chooses its settings on the fold's validation data and is measured on its test data.

    --set epochs=50 is for every method that has this setting, --set pg-rank.epochs=50 for one method. To run one method with two
    settings, give it a second name: --variant short=pg-rank --set short.epochs=20.

    Rows of a --run are matched with the test data by query id and item id, or row number from 0 where the data has no item ids, as
    'rankpolicy predict --out run.trec' writes them. A query or item that is missing is an error.
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
    runs = _parsed_runs(run_files or [], named.classes)
    if baseline is not None and baseline not in {*named.classes, *runs}:
        raise RankPolicyError(unknown_name("method or run in --baseline:", baseline, [*named.classes, *runs]))
    if per_query is not None:
        check_per_query(per_query, inputs={"--data": data} | {f"--run {name}": path for name, path in runs.items()})
    directory = None if out is None else made_directory(out, option="--out")
    chosen_folds = _folds(data, folds, seed, columns_from(qid, label, group, ignore))

    def report_fit(method: str, fold: str, table: MetricTable) -> None:
        numbers = ", ".join(f"{name} {mean:.4f}" for name, mean in table.means.items())
        note(f"{fold} {method}: {numbers} ({run.seconds:.0f} s)")

    with executor_from(executor, jobs, address) as chosen_executor:
        comparison = compare_rankers(
            chosen_folds,
            named.with_settings(by_method),
            measures,
            conventions=conventions,
            tune=tune,
            baseline=baseline,
            runs=runs,
            random_state=seed,
            executor=chosen_executor,
            report_fit=report_fit,
        )
    record = run.record(
        seed=seed,
        data=facts_of_folds(chosen_folds, str(data))
        | {f"run {name}": facts_of_file(path) for name, path in runs.items()},
        settings={name: with_defaults(named.classes[name], given) for name, given in by_method.items()},
    )
    document = comparison.to_dict() | {"tuned": tune, "run": record.to_dict()}
    if per_query is not None:
        write_per_query(comparison.to_frame(), per_query)
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
    if per_query is not None:
        note(f"metrics of {sum(map(len, comparison.tables[comparison.methods[0]]))} queries: {per_query}")
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


def _parsed_runs(texts: list[str], methods: Mapping[str, Any]) -> dict[str, Path]:
    runs: dict[str, Path] = {}
    for text in texts:
        name, equals, file = (part.strip() for part in text.partition("="))
        if not (name and equals and file):
            raise RankPolicyError(f"--run must be NAME=FILE, such as bm25=bm25.trec; got {text!r}.")
        if name in runs or name in methods:
            raise RankPolicyError(f"--run must give each run a name of its own; {name!r} is taken.")
        runs[name] = Path(file)
    return runs


def _folds(data: Path, num_folds: int, seed: int, columns: dict[str, Any]) -> list[Fold]:
    """The folds of a directory, or of one file: every query is tested once, a quarter of the others is for validation."""
    from rankpolicy.data import Fold, k_fold, read_dataset, read_folds, split_queries

    if data.is_dir():
        if columns != columns_from("qid", "label", None, None):
            raise RankPolicyError(
                f"--qid, --label, --group and --ignore name columns of a .csv or .parquet file; {data} is a directory of folds, which "
                "are LETOR text. Leave them out."
            )
        return read_folds(data)
    folds = []
    for number, (others, test) in enumerate(k_fold(read_dataset(data, **columns), num_folds, random_state=seed), 1):
        train, valid = split_queries(others, (0.75, 0.25), random_state=seed)
        folds.append(Fold(name=f"Fold{number}", train=train, valid=valid, test=test))
    return folds
