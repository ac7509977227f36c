"""rankpolicy explain"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support.models import load_ranker
from rankpolicy.cli.support.options import Group, Ignore, Json, Label, Model, Qid, Seed, columns_from
from rankpolicy.cli.support.output import (
    Run,
    console,
    facts_of_file,
    made_directory,
    note_if_slow,
    print_json,
    write_results,
)
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.data import RankingDataset
    from rankpolicy.explanations import Explanation, FeatureImportance
    from rankpolicy.rankers import Ranker

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy explain model.rp --data test.txt

rankpolicy explain model.rp --data test.txt --method gain --json

rankpolicy explain model.rp --data test.txt --query 17 --item GX008 --over GX011 --out runs/why

rankpolicy explain model.rp --data test.txt --query 17 --of expected_rank
"""
_MOST_ROWS = 20


def explain(
    ctx: typer.Context,
    model: Model,
    data: Annotated[
        Path,
        typer.Option(
            help="Data to rank: LETOR text (.gz, .bz2, .zst), .csv or .parquet of features; importances by permutation need labels.",
            show_default=False,
        ),
    ],
    query: Annotated[str | None, typer.Option(metavar="ID", help="Explain an item of this query.")] = None,
    item: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="The item to explain; where items have no ids, its row in the data, from 0.",
            show_default="the first in the ranking",
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="The item to compare it with.", show_default="the mean of up to 50 items of the data"
        ),
    ] = None,
    of: Annotated[
        str | None, typer.Option(metavar="score|expected_rank", help="What to explain.", show_default="score")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=2, help="Orders of features to draw where values are not exact.", show_default="100"),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="permutation|gain",
            help="Importance of features, without --query: by shuffling each, or by the gain of splits (trees).",
            show_default="permutation",
        ),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="The metric that drops when a feature is shuffled.", show_default="ndcg@10")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="How often each feature is shuffled.", show_default="5")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A directory for report.html, explain.json, features.csv, figure.svg and run.json."),
    ] = None,
    qid: Qid = "qid",
    label: Label = "label",
    group: Group = None,
    ignore: Ignore = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Show which features a model relies on, or why it places one item above another.

    Without --query: the importance of every feature, with 95% intervals. With --query: what each feature adds to the score or expected
    rank of an item, compared with another item or with the mean of the data, as Shapley values that add up to the difference. Features
    without names are numbered from 0.
    """
    from rankpolicy.data import read_dataset

    run = Run(ctx)
    asks_item = query is not None or item is not None or over is not None
    importance_options = {"method": method, "metric": metric, "repeats": repeats}
    _refuse(
        importance_options if asks_item else {"of": of, "samples": samples},
        because="is about the importance of features; leave out --query, --item and --over"
        if asks_item
        else "is about one item; name it with --query or --item",
    )
    directory = None if out is None else made_directory(out, option="--out")
    ranker = load_ranker(model)
    dataset = read_dataset(
        data,
        num_features=ranker.num_features_,
        feature_names=ranker.feature_names_,
        **columns_from(qid, label, group, ignore),
    )
    with note_if_slow("explaining ..."):
        found: Explanation | FeatureImportance
        if asks_item:
            chosen: dict[str, Any] = {"of": of or "score", "num_samples": 100 if samples is None else samples}
            found = _explained(ranker, dataset, query, item, over, chosen, seed)
        else:
            chosen = {"method": method or "permutation", "metric": metric or "ndcg@10", "num_repeats": _or(repeats, 5)}
            found = ranker.feature_importance(dataset, random_state=seed, **chosen)
    facts = facts_of_file(data) | {"queries": dataset.num_queries, "items": dataset.num_items}
    record = run.record(seed=seed, data={"data": facts, "model": facts_of_file(model)}, settings=chosen)
    document = found.to_dict() | {"run": record.to_dict()}
    if directory is not None:
        _write(directory, found, document, record)
    if as_json:
        print_json(document)
        return
    _print(found)
    if directory is not None:
        console().print(f"report {directory / 'report.html'}", markup=False)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _refuse(options: dict[str, Any], *, because: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise RankPolicyError(f"--{name} {because}, or leave it out.")


def _explained(
    ranker: Ranker,
    dataset: RankingDataset,
    query: str | None,
    item: str | None,
    over: str | None,
    chosen: dict[str, Any],
    seed: int,
) -> Explanation:
    def named(given: str | None) -> str | int | None:
        is_row = (
            given is not None
            and dataset.item_ids_by_query is None
            and given.isascii()
            and given.isdigit()
            and len(given) < 16
        )
        return int(given) if is_row and given is not None else given

    return ranker.explain(dataset, query=query, item=named(item), over=named(over), random_state=seed, **chosen)


def _write(directory: Path, found: Explanation | FeatureImportance, document: dict[str, Any], record: Any) -> None:
    from rankpolicy.explanations.report import explanation_page
    from rankpolicy.files import atomic_write
    from rankpolicy.reports.html import write_page

    write_results(directory, "explain", document, record)
    with atomic_write(directory / "features.csv") as file:
        found.to_frame().write_csv(file)
    found.plot(directory / "figure.svg")
    write_page(directory / "report.html", explanation_page(found, record))


def _print(found: Explanation | FeatureImportance) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from rankpolicy.explanations import FeatureImportance

    drawn, screen = Table(box=SIMPLE_HEAD), console()
    rows = found.to_frame().head(_MOST_ROWS).iter_rows(named=True)
    columns: tuple[str, ...]
    cells: list[tuple[str, ...]]
    if isinstance(found, FeatureImportance):
        columns, closing = ("feature", "importance", f"{found.level:.0%} interval"), found.meaning
        cells = [
            (row["feature"], f"{row['importance']:.4f}", f"{row['lower']:.4f} to {row['upper']:.4f}") for row in rows
        ]
    else:
        columns = ("feature", found.item, found.reference_name, "adds")
        cells = [(row["feature"], row["item"], row["reference"], f"{row['value']:+.4f}") for row in rows]
        closing = f"{found.title}: {found.difference}; Shapley values, {found.method}"
    for place, name in enumerate(columns):
        drawn.add_column(_plain(name), justify="right" if place else "left")
    for cell in cells:
        drawn.add_row(*map(_plain, cell))
    screen.print(drawn)
    more = len(found.names) - len(cells)
    screen.print(_plain(closing + (f"; {more} more features" if more > 0 else "")), style="dim")


def _plain(text: str) -> Any:
    """Text that rich prints as it is, square brackets included."""
    from rich.text import Text

    return Text(text)
