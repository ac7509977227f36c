"""rankpolicy evaluate

Parameters
----------
data
    Test data: LETOR text (.gz, .bz2, .zst), .csv or .parquet of features, or a click table: .csv, .parquet, whose clicks
    --propensities weights.
trec
    Print every query's metrics as trec_eval -q does.

Examples
--------
rankpolicy evaluate model.rp --data test.txt --metrics ndcg@10,map
rankpolicy evaluate model.rp --data test.txt --metrics ndcg@5 --gain linear --empty skip --json
rankpolicy evaluate model.rp --data test.txt --per-query queries.csv
rankpolicy evaluate search.rp --data clicks.parquet --metrics mrr,success@1 --propensities bias.json
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import check_per_query, note, print_json, show, show_table, write_frame
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.evaluation import MetricTable


def evaluate(
    model: options.Model,
    *,
    data: Path,
    metrics: options.Metrics = "ndcg@10,map",
    conventions: options.MetricConventions,
    bias: options.MeasuredBias,
    per_query: options.PerQuery = None,
    trec: bool = False,
    columns: options.ColumnsOnDisk,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Measure a model on labelled data or clicks: means, 95% bootstrap intervals (drawn with --seed) and the conventions."""
    from rankpolicy import evaluation
    from rankpolicy.metrics import parse_metrics

    measured_by = conventions.value()
    parse_metrics(metrics, measured_by)
    if trec and as_json:
        raise RankPolicyError("stdout takes one form: choose --json or --trec, not both.")
    check_per_query(per_query, inputs={"the model": model, "--data": data, "--propensities": bias.propensities})
    position_bias = bias.read()
    ranker = options.load_ranker(model)
    dataset = columns.read_for(ranker, data)
    if position_bias is not None:
        from rankpolicy.clicks import weighted_by_propensity

        dataset = weighted_by_propensity(dataset, position_bias)
    table = evaluation.evaluate(ranker, dataset, metrics, conventions=measured_by)
    if per_query is not None:
        write_frame(table.to_frame(), per_query)
    if as_json:
        described = {"model": str(model), "method": ranker.name, "data": str(data)}
        print_json(described | _document(table, seed))
    elif trec:
        typer.echo(table.to_trec(), nl=False)
    else:
        _show(table, seed)
        if per_query is not None:
            note(f"metrics of {len(table)} queries: {per_query}")


def _document(table: MetricTable, seed: int) -> dict[str, Any]:
    """The JSON of the table, its intervals drawn with this seed."""
    document: dict[str, Any] = table.to_dict()
    for name, facts in document["metrics"].items():
        if facts["mean"] is not None:
            facts["interval"] = list(table.confidence_interval(name, random_state=seed))
    return document


def _show(table: MetricTable, seed: int) -> None:
    rows = []
    for name, mean in table.means.items():
        low, high = table.confidence_interval(name, random_state=seed)
        rows.append((name, f"{mean:.4f}", f"{low:.4f} to {high:.4f}", str(table.num_counted[name])))
    show_table(("metric", "mean", "95% interval", "queries"), rows)
    if table.weighting is not None:
        show(table.weighting, dim=True)
    show(str(table.conventions), dim=True)
