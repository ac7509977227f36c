"""Options that several verbs share, each declared once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.executors import Executor
    from rankpolicy.types import Conventions

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting, such as epochs=50; may be repeated. Lists: model.hidden=64,64. All settings: rankpolicy methods NAME.",
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model written by 'rankpolicy train'.", show_default=False)
]
Metrics = Annotated[
    str, typer.Option("--metrics", help="Metrics, comma-separated: ndcg@10, map, err@10 or a mix such as mean(ap, rr).")
]
Gain = Annotated[str, typer.Option("--gain", metavar="exp2|linear", help="Gain of a label: 2^label - 1, or the label.")]
Empty = Annotated[
    str,
    typer.Option("--empty", metavar="0|1|skip", help="Value of a query without relevant items; skip leaves it out."),
]
RelevantFrom = Annotated[
    float, typer.Option("--relevant-from", help="Lowest label that binary metrics (map, mrr, p, recall) count.")
]
Ties = Annotated[
    str,
    typer.Option(
        "--ties",
        metavar="expected|worst|item_id",
        help="Items with equal scores: mean over their orders, the worst order, or by item id as trec_eval.",
    ),
]
LogColumns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAME=COLUMN,...",
        help="What columns of the log are called: item=shown_item,rank=pos. Names: session, query, item, position, clicked; items, "
        "clicks; impressions.",
    ),
]
Qid = Annotated[
    str, typer.Option("--qid", metavar="COLUMN", help="Column of query ids, for .csv and .parquet of features.")
]
Label = Annotated[
    str, typer.Option("--label", metavar="COLUMN", help="Column of labels, for .csv and .parquet of features.")
]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="COLUMN", help="Column of protected groups; by default 'group' if there is one."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="COLUMNS", help="Columns of .csv and .parquet to leave out, separated by commas."),
]
OnDisk = Annotated[
    bool,
    typer.Option(
        "--on-disk",
        help="Leave the features of LETOR and Parquet data on disk, for data bigger than memory; --data may be a folder of files.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, help="Most tasks at the same time.", show_default="one per core"),
]
ExecutorName = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="serial|threads|processes|ray",
        help="Where tasks run: here, or on a Ray cluster. Results do not depend on it.",
        show_default=False,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        help="A running Ray cluster for --executor ray; by default Ray is started on this machine alone.",
        show_default=False,
    ),
]
MaxLabel = Annotated[float, typer.Option("--max-label", help="Highest label of the scale, for err.")]


@contextmanager
def executor_from(
    name: str | None, jobs: int | None, address: str | None, *, default: str | None = "processes"
) -> Iterator[Executor | None]:
    """The executor that the options describe, closed at the end; None where none of them was given and there is no default."""
    from rankpolicy.executors import EXECUTORS, make_executor
    from rankpolicy.types import unknown_name

    if name is not None and name not in EXECUTORS:
        raise RankPolicyError(unknown_name("--executor", name, EXECUTORS))
    if address is not None and name != "ray":
        raise RankPolicyError("--address is that of a Ray cluster: it must come with --executor ray.")
    if name == "serial" and jobs not in (None, 1):
        raise RankPolicyError(f"--executor serial runs one task at a time; leave --jobs {jobs} out, or take processes.")
    chosen = name or default or ("processes" if jobs is not None else None)
    if chosen is None:
        yield None
        return
    with make_executor(chosen, jobs=jobs, address=address) as executor:
        yield executor


def conventions_from(
    gain: str, empty: str, relevant_from: float, max_label: float, ties: str = "expected"
) -> Conventions:
    """The conventions that the options describe."""
    from rankpolicy.types import Conventions

    if empty not in ("0", "1", "skip"):
        raise RankPolicyError(f"--empty must be 0, 1 or skip; got {empty!r}.")
    if gain not in ("exp2", "linear"):
        raise RankPolicyError(f"--gain must be exp2 or linear; got {gain!r}.")
    if ties not in ("expected", "worst", "item_id"):
        raise RankPolicyError(f"--ties must be expected, worst or item_id; got {ties!r}.")
    return Conventions(
        gain=gain,  # type: ignore[arg-type]
        empty="skip" if empty == "skip" else int(empty),  # type: ignore[arg-type]
        relevant_from=relevant_from,
        max_label=max_label,
        ties=ties,  # type: ignore[arg-type]
    )


def columns_from(
    qid: str, label: str, group: str | None, ignore: list[str] | None, *, on_disk: bool = False
) -> dict[str, Any]:
    """What the options say about how data is read, as ``read_dataset`` takes it."""
    left_out = [name.strip() for names in ignore or () for name in names.split(",") if name.strip()]
    return {"qid": qid, "label": label, "protected": group, "ignore": left_out, "on_disk": on_disk}


def log_columns(text: str | None) -> dict[str, str]:
    """The columns that ``--columns`` names, by what they hold."""
    columns = {}
    for pair in filter(None, (text or "").split(",")):
        name, _, column = (word.strip() for word in pair.partition("="))
        if not name or not column:
            raise RankPolicyError(
                f"--columns must be names and columns such as item=shown_item,rank=pos; got {pair!r:.80}."
            )
        columns[name] = column
    return columns
