"""rankpolicy evaluate"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.clicks_to_train_on import position_bias_from
from rankpolicy.cli.support.models import load_ranker
from rankpolicy.cli.support.options import (
    Empty,
    Gain,
    Group,
    Ignore,
    Json,
    Label,
    MaxLabel,
    Metrics,
    Model,
    OnDisk,
    Qid,
    RelevantFrom,
    Seed,
    Ties,
    columns_from,
    conventions_from,
)
from rankpolicy.cli.support.output import console, note, print_json
from rankpolicy.cli.support.per_query import check_per_query, write_per_query
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.evaluation import MetricTable

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy evaluate model.rp --data test.txt --metrics ndcg@10,map

rankpolicy evaluate model.rp --data test.txt --metrics ndcg@5 --gain linear --empty skip --json

rankpolicy evaluate model.rp --data test.txt --per-query queries.csv

rankpolicy evaluate search.rp --data clicks.parquet --metrics mrr,success@1 --propensities bias.json
"""


def evaluate(
    model: Model,
    data: Annotated[
        Path,
        typer.Option(
            help="Test data: LETOR text (.gz, .bz2, .zst), .csv or .parquet of features, or a click table: .csv, .parquet.",
            show_default=False,
        ),
    ],
    metrics: Metrics = "ndcg@10,map",
    gain: Gain = "exp2",
    empty: Empty = "0",
    relevant_from: RelevantFrom = 1.0,
    max_label: MaxLabel = 4.0,
    ties: Ties = "expected",
    propensities: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="For a click table: bias.json of 'rankpolicy clicks bias', to weight its clicks by."
        ),
    ] = None,
    bias_method: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method to take where --propensities holds several.")
    ] = None,
    per_query: Annotated[Path | None, typer.Option(help="Write the metrics of every query: .csv or .parquet.")] = None,
    trec: Annotated[bool, typer.Option("--trec", help="Print every query's metrics as trec_eval -q does.")] = False,
    qid: Qid = "qid",
    label: Label = "label",
    group: Group = None,
    ignore: Ignore = None,
    on_disk: OnDisk = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Measure a model on labelled data or clicks: means, 95% bootstrap intervals (drawn with --seed) and the conventions."""
    from rankpolicy import evaluation
    from rankpolicy.data import read_dataset
    from rankpolicy.metrics import parse_metrics

    conventions = conventions_from(gain, empty, relevant_from, max_label, ties)
    parse_metrics(metrics, conventions)
    if trec and as_json:
        raise RankPolicyError("stdout takes one form: choose --json or --trec, not both.")
    if per_query is not None:
        check_per_query(per_query, inputs={"the model": model, "--data": data, "--propensities": propensities})
    bias = position_bias_from(propensities, bias_method)
    ranker = load_ranker(model)
    dataset = read_dataset(
        data,
        num_features=ranker.num_features_,
        feature_names=ranker.feature_names_,
        **columns_from(qid, label, group, ignore, on_disk=on_disk),
    )
    if bias is not None:
        from rankpolicy.clicks import weighted_by_propensity

        dataset = weighted_by_propensity(dataset, bias)
    table = evaluation.evaluate(ranker, dataset, metrics, conventions=conventions)
    if per_query is not None:
        write_per_query(table.to_frame(), per_query)
    if as_json:
        described = {"model": str(model), "method": ranker.name, "data": str(data)}
        print_json(described | _document(table, seed))
    elif trec:
        typer.echo(table.to_trec(), nl=False)
    else:
        _print_table(table, seed)
        if table.weighting is not None:
            console().print(table.weighting, style="dim")
        console().print(str(conventions), style="dim")
        if per_query is not None:
            note(f"metrics of {len(table)} queries: {per_query}")


def _document(table: MetricTable, seed: int) -> dict[str, Any]:
    """The table's own JSON, its intervals drawn with this seed."""
    document: dict[str, Any] = table.to_dict()
    for name, facts in document["metrics"].items():
        if facts["mean"] is not None:
            facts["interval"] = list(table.confidence_interval(name, random_state=seed))
    return document


def _print_table(table: MetricTable, seed: int) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    drawn = Table(box=SIMPLE_HEAD)
    drawn.add_column("metric")
    for name in ("mean", "95% interval", "queries"):
        drawn.add_column(name, justify="right")
    for name, mean in table.means.items():
        low, high = table.confidence_interval(name, random_state=seed)
        drawn.add_row(name, f"{mean:.4f}", f"{low:.4f} to {high:.4f}", str(table.num_counted[name]))
    console().print(drawn)
