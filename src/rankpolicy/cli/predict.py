"""rankpolicy predict

A .txt file gets one score per line, in the order of the items in the data file; a TREC run is sorted, with item ids, or row
numbers where the data has none.

Parameters
----------
data
    Items to rank: LETOR text (.gz, .bz2, .zst), .csv or .parquet of features, or a click table: .csv, .parquet.
out
    The file to write: .trec or .run, .txt (one score per line), .csv or .parquet.
sampled
    Draw each ranking from the policy; scores are then n, n - 1, ..., 1.

Examples
--------
rankpolicy predict model.rp --data test.txt --out run.trec
rankpolicy predict model.rp --data test.txt --out scores.txt
rankpolicy predict model.rp --data test.txt --out sampled.trec --sampled --seed 3
rankpolicy predict model.rp --data items.csv --qid search_id --out scores.csv
rankpolicy predict search.rp --data rows.csv --out scores.txt
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import check_can_write, print_json, show, write_frame
from rankpolicy.types import RankPolicyError
from rankpolicy.writing import atomic_write

if TYPE_CHECKING:
    from rankpolicy.data import RankingDataset
    from rankpolicy.rankers import Ranker


def predict(
    model: options.Model,
    *,
    data: Path,
    out: Path,
    sampled: bool = False,
    columns: options.ColumnsOnDisk,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Score the items of new data."""
    if out.suffix not in WRITERS:
        raise RankPolicyError(f"--out must end in {', '.join(WRITERS)}; got {out.name!r}.")
    check_can_write(out, option="--out", inputs={"the model": model, "--data": data})
    ranker = options.load_ranker(model)
    dataset = columns.read_for(ranker, data, needs_labels=False)
    scores = _sampled_scores(ranker, dataset, seed) if sampled else ranker.predict(dataset)
    WRITERS[out.suffix](dataset, scores, out, ranker.name)
    if as_json:
        described = {"model": str(model), "method": ranker.name, "data": str(data), "out": str(out)}
        print_json(described | {"queries": dataset.num_queries, "items": dataset.num_items})
    else:
        show(f"{dataset.num_items} items of {dataset.num_queries} queries: {out}")


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
    with atomic_write(out) as file:
        file.writelines(f"{score!r}\n".encode() for score in scores.tolist())


def _write_table(dataset: RankingDataset, scores: Any, out: Path, method: str) -> None:
    import polars

    columns = {"qid": dataset.query_ids[dataset.query_numbers], "item_id": dataset.item_ids_by_query}
    rows = {name: dataset.in_row_order(values).tolist() for name, values in columns.items() if values is not None}
    write_frame(polars.DataFrame(rows | {"score": scores.tolist()}), out)


WRITERS: dict[str, Callable[[Any, Any, Path, str], None]] = {
    ".trec": _write_run,
    ".run": _write_run,
    ".txt": _write_scores,
    ".csv": _write_table,
    ".parquet": _write_table,
}
