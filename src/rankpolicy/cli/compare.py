"""rankpolicy compare

Every method is fitted on a fold's training data, chooses its settings on the fold's validation data and is measured on its test data.

--set epochs=50 is for every method that has this setting, --set pg-rank.epochs=50 for one method. To run one method with two
settings, give it a second name: --variant short=pg-rank --set short.epochs=20.

Rows of a --run are matched with the test data by query id and item id, or row number from 0 where the data has no item ids, as
'rankpolicy predict --out run.trec' writes them. A query or item that is missing is an error.

Parameters
----------
data
    A directory with Fold1, Fold2, ..., or one file to be split.
methods
    Methods, comma-separated; see: rankpolicy methods.
run_files : --run NAME=FILE
    A TREC run of another ranker that takes part: it ranks every item of every test query. May be repeated.
baseline : NAME, default all pairs are compared
    A method or run that all others are compared with; p-values are adjusted for these comparisons only.
folds
    Number of folds that one file is split into, by query.
tune
    Choose each method's settings on validation data.
out
    A directory for compare.json, report.html and run.json.

Examples
--------
rankpolicy compare --data MQ2008 --methods pg-rank,lambdamart,listnet,regression --metrics ndcg@10,map
rankpolicy compare --data judged.txt.gz --folds 5 --methods pg-rank,lambdamart --out runs/judged
rankpolicy compare --data MQ2008 --methods pg-rank,listnet --no-tune --set pg-rank.epochs=50 --json
rankpolicy compare --data MQ2008 --methods pg-rank --variant short=pg-rank --set short.epochs=20
rankpolicy compare --data MQ2008 --methods pg-rank,listnet --run bm25=bm25.trec --baseline bm25 --per-query queries.csv
rankpolicy compare --data items.csv --qid search_id --label grade --ignore title,url
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support import options
from rankpolicy.cli.support.method_settings import parse_methods
from rankpolicy.cli.support.output import (
    check_per_query,
    facts_of_datasets,
    facts_of_file,
    note,
    show,
    show_table,
    styled,
    write_frame,
)
from rankpolicy.cli.support.run import Run
from rankpolicy.types import RankPolicyError, check_name

if TYPE_CHECKING:
    from rich.text import Text

    from rankpolicy.data import Fold
    from rankpolicy.evaluation import MetricTable
    from rankpolicy.experiments import Comparison
    from rankpolicy.reports.run_record import RunRecord


def compare(
    *,
    data: Path,
    methods: str = "pg-rank,lambdamart",
    variant: options.Variant = None,
    metrics: options.Metrics = "ndcg@10,map",
    run_files: list[str] | None = None,
    baseline: str | None = None,
    folds: Annotated[int, typer.Option(min=2)] = 5,
    tune: bool = True,
    settings: options.Set = None,
    conventions: options.MetricConventions,
    columns: options.Columns,
    work: options.ParallelWork,
    per_query: options.PerQuery = None,
    out: Path | None = None,
    run: Run,
) -> None:
    """Learn and measure several methods on the same folds: means, paired significance, one table."""
    from rankpolicy.experiments import compare_rankers
    from rankpolicy.metrics import parse_metrics
    from rankpolicy.rankers import RANKERS

    measured_by = conventions.value()
    measures = parse_metrics(metrics, measured_by)
    named = parse_methods(methods, variant, settings, RANKERS)
    runs = _parsed_runs(run_files or [], named.classes)
    check_name("method or run in --baseline:", baseline, [*named.classes, *runs])
    check_per_query(per_query, inputs={"--data": data} | {f"--run {name}": path for name, path in runs.items()})
    run.make_directory(out)
    chosen_folds = _folds(data, folds, run.seed, columns)
    with work.opened("processes") as executor:
        comparison = compare_rankers(
            chosen_folds,
            named.for_experiment(),
            measures,
            conventions=measured_by,
            tune=tune,
            baseline=baseline,
            runs=runs,
            random_state=run.seed,
            executor=executor,
            report_fit=partial(_report, run),
        )
    if per_query is not None:
        write_frame(comparison.to_frame(), per_query)
    run.finish(
        comparison.to_dict() | {"tuned": tune},
        data=facts_of_folds(chosen_folds, str(data))
        | {f"run {name}": facts_of_file(path) for name, path in runs.items()},
        settings=named.all_settings(),
        show_results=lambda: show_comparison(comparison, per_query),
        files=lambda record: {"report.html": _page(comparison, data.name, record)},
    )


def _report(run: Run, method: str, fold: str, table: MetricTable) -> None:
    run.note(f"{fold} {method}: {', '.join(f'{name} {mean:.4f}' for name, mean in table.means.items())}")


def facts_of_folds(folds: list[Fold], path: str) -> dict[str, dict[str, Any]]:
    """The facts of a record about the data of all folds."""
    roles = ("train", "valid", "test")
    return facts_of_datasets(path, {f"{fold.name} {role}": getattr(fold, role) for fold in folds for role in roles})


def _page(comparison: Comparison, data_name: str, record: RunRecord) -> str:
    from rankpolicy.reports.comparison_report import comparison_page

    lead = f"{', '.join(comparison.methods)} on {data_name}."
    return comparison_page(comparison, record, title="Comparison of rankers", lead=lead)


def _parsed_runs(texts: list[str], methods: Mapping[str, Any]) -> dict[str, Path]:
    runs: dict[str, Path] = {}
    for name, file in options.pairs_in(texts, "--run", "NAME=FILE, such as bm25=bm25.trec"):
        if name in runs or name in methods:
            raise RankPolicyError(f"--run must give each run a name of its own; {name!r} is taken.")
        runs[name] = Path(file)
    return runs


def _folds(data: Path, num_folds: int, seed: int, columns: options.Columns) -> list[Fold]:
    """The folds of a directory, or of one file: every query is tested once, a quarter of the others is for validation."""
    from rankpolicy.data import Fold, k_fold, read_folds, split_queries

    if data.is_dir():
        if columns.are_named:
            raise RankPolicyError(
                f"--qid, --label, --protected and --ignore name columns of a .csv or .parquet file; {data} is a directory of folds, which "
                "are LETOR text. Leave them out."
            )
        return read_folds(data)
    folds = []
    for number, (remaining, test) in enumerate(k_fold(columns.read(data), num_folds, random_state=seed), 1):
        train, valid = split_queries(remaining, (0.75, 0.25), random_state=seed)
        folds.append(Fold(name=f"Fold{number}", train=train, valid=valid, test=test))
    return folds


def show_comparison(comparison: Comparison, per_query: Path | None = None) -> None:
    """Print a comparison on stdout, and where the metrics of every query are."""
    from rankpolicy.reports.comparison_report import chosen_settings

    _show_metrics(comparison)
    if comparison.significance:
        _show_significance(comparison)
    show(str(comparison.conventions), dim=True)
    for method in comparison.methods:
        for text in chosen_settings(comparison, method):
            show(f"{method}: {text}", dim=True)
    if per_query is not None:
        note(f"metrics of {sum(map(len, comparison.tables[comparison.methods[0]]))} queries: {per_query}")


def _show_metrics(comparison: Comparison) -> None:
    from rankpolicy.reports.comparison_report import mean_text

    num_folds, num_queries = len(comparison.fold_names), sum(map(len, comparison.tables[comparison.methods[0]]))
    over = (
        f"mean over {num_folds} folds ± standard deviation between them" if num_folds > 1 else "mean over test queries"
    )
    best = {metric: comparison.best_method(metric) for metric in comparison.metrics}
    rows: list[list[str | Text]] = [
        [
            method,
            *(
                styled(mean_text(comparison, method, metric), "bold" if best[metric] == method else "")
                for metric in comparison.metrics
            ),
        ]
        for method in comparison.methods
    ]
    show_table(("method", *comparison.metrics), rows)
    show(f"{over}; {num_queries} test queries", dim=True)


def _show_significance(comparison: Comparison) -> None:
    from rankpolicy.reports.comparison_report import adjustment, p_text

    reference = comparison.baseline or comparison.best_method(comparison.metrics[0])
    tests = list(dict.fromkeys(paired.test for paired in comparison.significance))
    rows = []
    for method in comparison.methods:
        for metric in comparison.metrics if method != reference else ():
            paired = [p for p in comparison.significance if {p.a, p.b} == {method, reference} and p.metric == metric]
            difference = paired[0].difference if paired[0].a == method else -paired[0].difference
            p_values = {p.test: p_text(p.p_holm) for p in paired}
            rows.append([method, metric, f"{difference:+.4f}", *(p_values[test] for test in tests)])
    show_table((f"against {reference}", "metric", "difference", *tests), rows, numbers_from=2)
    show(adjustment(comparison), dim=True)
