"""rankpolicy predict"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.models import load_ranker
from rankpolicy.cli.support.options import Group, Ignore, Json, Label, Model, OnDisk, Qid, Seed, columns_from
from rankpolicy.cli.support.output import check_can_write, console, print_json
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.data import RankingDataset
    from rankpolicy.rankers import Ranker

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy predict model.rp --data test.txt --out run.trec

rankpolicy predict model.rp --data test.txt --out scores.txt

rankpolicy predict model.rp --data test.txt --out sampled.trec --sampled --seed 3

rankpolicy predict model.rp --data items.csv --qid search_id --out scores.csv

rankpolicy predict search.rp --data rows.csv --out scores.txt
"""


def predict(
    model: Model,
    data: Annotated[
        Path,
        typer.Option(
            help="Items to rank: LETOR text (.gz, .bz2, .zst), .csv or .parquet of features, or a click table: .csv, .parquet.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The file to write: .trec or .run, .txt (one score per line), .csv or .parquet.", show_default=False
        ),
    ],
    sampled: Annotated[
        bool,
        typer.Option("--sampled", help="Draw each ranking from the policy; scores are then n, n - 1, ..., 1."),
    ] = False,
    qid: Qid = "qid",
    label: Label = "label",
    group: Group = None,
    ignore: Ignore = None,
    on_disk: OnDisk = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Score the items of new data.

    A .txt file gets one score per line, in the order of the items in the data file; a TREC run is sorted, with item ids, or row
    numbers where the data has none.
    """
    from rankpolicy.data import read_dataset

    if out.suffix not in WRITERS:
        raise RankPolicyError(f"--out must end in {', '.join(WRITERS)}; got {out.name!r}.")
    check_can_write(out, option="--out", inputs={"the model": model, "--data": data})
    ranker = load_ranker(model)
    dataset = read_dataset(
        data,
        num_features=ranker.num_features_,
        feature_names=ranker.feature_names_,
        needs_labels=False,
        **columns_from(qid, label, group, ignore, on_disk=on_disk),
    )
    scores = _sampled_scores(ranker, dataset, seed) if sampled else ranker.predict(dataset)
    WRITERS[out.suffix](dataset, scores, out, ranker.name)
    if as_json:
        described = {"model": str(model), "method": ranker.name, "data": str(data), "out": str(out)}
        print_json(described | {"queries": dataset.num_queries, "items": dataset.num_items})
    else:
        console().print(f"{dataset.num_items} items of {dataset.num_queries} queries: {out}", markup=False)


def _sampled_scores(ranker: Ranker, dataset: RankingDataset, seed: int) -> Any:
    """Scores of the rows (items,) by one ranking per query drawn from the policy; the last item has score 1."""
    import numpy as np

    scores = np.empty(dataset.num_items)
    for (ranking,) in ranker.sample(dataset, num_samples=1, random_state=seed):
        scores[ranking] = np.arange(len(ranking), 0, -1)
    return scores


def _write_run(dataset: RankingDataset, scores: Any, out: Path, method: str) -> None:
    from rankpolicy.data import write_run

    write_run(dataset, scores, out, tag=f"rankpolicy-{method}")


def _write_scores(dataset: RankingDataset, scores: Any, out: Path, method: str) -> None:
    from rankpolicy.files import atomic_write

    with atomic_write(out) as file:
        file.writelines(f"{score!r}\n".encode() for score in scores.tolist())


def _write_table(dataset: RankingDataset, scores: Any, out: Path, method: str) -> None:
    import polars

    from rankpolicy.files import atomic_write

    columns = {"qid": dataset.query_ids[dataset.query_numbers], "item_id": dataset.item_ids_by_query}
    rows = {name: dataset.in_row_order(values).tolist() for name, values in columns.items() if values is not None}
    frame = polars.DataFrame(rows | {"score": scores.tolist()})
    with atomic_write(out) as file:
        if out.suffix == ".csv":
            frame.write_csv(file)
        else:
            frame.write_parquet(file)


WRITERS: dict[str, Callable[[Any, Any, Path, str], None]] = {
    ".trec": _write_run,
    ".run": _write_run,
    ".txt": _write_scores,
    ".csv": _write_table,
    ".parquet": _write_table,
}
