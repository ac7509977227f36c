"""Options that several verbs share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
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
MaxLabel = Annotated[float, typer.Option("--max-label", help="Highest label of the scale, for err.")]


def conventions_from(gain: str, empty: str, relevant_from: float, max_label: float) -> Conventions:
    """The conventions that the options describe."""
    from rankpolicy.types import Conventions

    if empty not in ("0", "1", "skip"):
        raise RankPolicyError(f"--empty must be 0, 1 or skip; got {empty!r}.")
    if gain not in ("exp2", "linear"):
        raise RankPolicyError(f"--gain must be exp2 or linear; got {gain!r}.")
    return Conventions(
        gain=gain,  # type: ignore[arg-type]
        empty="skip" if empty == "skip" else int(empty),  # type: ignore[arg-type]
        relevant_from=relevant_from,
        max_label=max_label,
    )
