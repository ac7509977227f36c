"""rankpolicy explain

Without --query: the importance of every feature, with 95% intervals. With --query: what each feature adds to the score or expected
rank of an item, compared with another item or with the mean of the data, as Shapley values that add up to the difference. Features
without names are numbered from 0.

Parameters
----------
data
    Data to rank: LETOR text (.gz, .bz2, .zst), .csv or .parquet of features; importances by permutation need labels.
query : ID
    Explain an item of this query.
item : ID, default the first in the ranking
    The item to explain; where items have no ids, its row in the data, from 0.
over : ID, default the mean of up to 50 items of the data
    The item to compare it with.
explained : --of score|expected_rank, default score
    What to explain.
samples : default 100
    Orders of features to draw where values are not exact.
method : permutation|gain, default permutation
    Importance of features, without --query: by shuffling each, or by the gain of splits (trees).
metric : default ndcg@10
    The metric that drops when a feature is shuffled.
repeats : default 5
    How often each feature is shuffled.
out
    A directory for report.html, explain.json, features.csv, figure.svg and run.json.

Examples
--------
rankpolicy explain model.rp --data test.txt
rankpolicy explain model.rp --data test.txt --method gain --json
rankpolicy explain model.rp --data test.txt --query 17 --item GX008 --over GX011 --out runs/why
rankpolicy explain model.rp --data test.txt --query 17 --of expected_rank
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import facts_of_file, note_if_slow, show, show_table, write_frame
from rankpolicy.cli.support.run import Files, Run
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.data import RankingDataset
    from rankpolicy.explanations import Explanation, FeatureImportance
    from rankpolicy.reports.run_record import RunRecord

_MOST_ROWS = 20


def explain(
    model: options.Model,
    *,
    data: Path,
    query: str | None = None,
    item: str | None = None,
    over: str | None = None,
    explained: str | None = None,
    samples: Annotated[int | None, typer.Option(min=2)] = None,
    method: str | None = None,
    metric: str | None = None,
    repeats: Annotated[int | None, typer.Option(min=1)] = None,
    out: Path | None = None,
    columns: options.Columns,
    run: Run,
) -> None:
    """Show which features a model relies on, or why it places one item above another."""
    of_item = {"query": query, "item": item, "over": over}
    item_options = {"of": explained, "samples": samples}
    importance_options = {"method": method, "metric": metric, "repeats": repeats}
    explains_item = any(value is not None for value in of_item.values())
    if explains_item:
        _refuse(importance_options, "is about the importance of features; leave out --query, --item and --over")
    else:
        _refuse(item_options, "is about one item; name it with --query or --item")
    run.make_directory(out)
    ranker = options.load_ranker(model)
    dataset = columns.read_for(ranker, data)
    with note_if_slow("explaining ..."):
        result: Explanation | FeatureImportance
        if explains_item:
            chosen: dict[str, Any] = {"of": explained or "score", "num_samples": samples or 100}
            chosen_item, compared_item = _row_or_id(item, dataset), _row_or_id(over, dataset)
            result = ranker.explain(
                dataset, query=query, item=chosen_item, over=compared_item, random_state=run.seed, **chosen
            )
        else:
            chosen = {"method": method or "permutation", "metric": metric or "ndcg@10", "num_repeats": repeats or 5}
            result = ranker.feature_importance(dataset, random_state=run.seed, **chosen)
    facts = {"data": facts_of_file(data, dataset), "model": facts_of_file(model)}
    run.finish(
        result.to_dict(),
        data=facts,
        settings=chosen,
        show_results=lambda: _show(result),
        files=lambda record: _files(run, result, record),
    )


def _refuse(unread: dict[str, Any], because: str) -> None:
    for name, value in unread.items():
        if value is not None:
            raise RankPolicyError(f"--{name} {because}, or leave it out.")


def _row_or_id(text: str | None, dataset: RankingDataset) -> str | int | None:
    """An item by its id; where items have no ids, by the number of its row."""
    if text is None or dataset.item_ids_by_query is not None:
        return text
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else text


def _files(run: Run, result: Explanation | FeatureImportance, record: RunRecord) -> Files:
    from rankpolicy.explanations.report import explanation_page

    assert run.directory is not None
    write_frame(result.to_frame(), run.directory / "features.csv")
    result.plot(run.directory / "figure.svg")
    return {"report.html": explanation_page(result, record)}


def _show(result: Explanation | FeatureImportance) -> None:
    from rankpolicy.explanations import FeatureImportance

    shown = list(result.to_frame().head(_MOST_ROWS).iter_rows(named=True))
    if isinstance(result, FeatureImportance):
        header, closing = ("feature", "importance", f"{result.level:.0%} interval"), result.meaning
        rows = [
            [row["feature"], f"{row['importance']:.4f}", f"{row['lower']:.4f} to {row['upper']:.4f}"] for row in shown
        ]
    else:
        header = ("feature", result.item, result.reference_name, "adds")  # type: ignore[assignment]
        rows = [[row["feature"], row["item"], row["reference"], f"{row['value']:+.4f}"] for row in shown]
        closing = f"{result.title}: {result.difference}; Shapley values, {result.method}"
    show_table(header, rows)
    num_hidden = len(result.names) - len(rows)
    show(closing + (f"; {num_hidden} more features" if num_hidden > 0 else ""), dim=True)
