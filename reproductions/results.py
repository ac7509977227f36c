"""The results that are kept with the repository: one JSON file per target, made from what ``rankpolicy reproduce`` wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankpolicy.types import RankPolicyError
from reproductions.target import Claim, Row

FOLDER = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run of a target gave.

    Parameters
    ----------
    target
        The name of the target.
    started
        When the run started: UTC, ISO 8601.
    minutes
        How long it took.
    commit
        The commit that was run: set-up and claims are the ones it holds.
    seed
        The seed of the run.
    claims
        The claims, checked.
    rows
        The rows of the table.
    versions
        Versions of Python and packages; empty where the run is older than their record.
    machine
        Processor, cores and system; empty where the run is older than their record.
    """

    target: str
    started: str
    minutes: float
    commit: str
    seed: int
    claims: tuple[Claim, ...]
    rows: tuple[Row, ...]
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)


def file_of(target: str) -> Path:
    """Where the result of a target is kept."""
    return FOLDER / f"{target}.json"


def read_result(target: str) -> Result | None:
    """The result of a target; None where no run is kept."""
    file = file_of(target)
    if not file.is_file():
        return None
    kept = json.loads(file.read_text("utf-8"))
    claims, rows = kept.pop("claims"), kept.pop("rows")
    return Result(**kept, claims=tuple(Claim(**claim) for claim in claims), rows=tuple(rows))


def keep(directory: Path, *, commit_of_run: str | None = None) -> Path:
    """Keep the result that ``rankpolicy reproduce`` wrote to a directory.

    Parameters
    ----------
    directory
        What ``--out`` named.
    commit_of_run
        The commit that was run, where the run could not see it (a machine without the repository).
    """
    document = json.loads((directory / "reproduce.json").read_text("utf-8"))
    record = document["run"]
    if document["smoke"]:
        raise RankPolicyError(
            f"{directory} holds a smoke run, whose numbers mean nothing: run {document['target']} without --smoke."
        )
    run_commit = commit_of_run or document.get("commit")
    if not run_commit or run_commit.endswith("+"):
        raise RankPolicyError(
            f"{directory} was not run from a commit (it says {run_commit!r}): commit set-up and claims first, then run it."
        )
    kept: dict[str, Any] = {
        "target": document["target"],
        "started": record["started"],
        "minutes": round(record["duration_seconds"] / 60, 1),
        "commit": run_commit,
        "seed": record["seed"],
        "versions": record.get("versions", {}),
        "machine": record.get("machine", {}),
        "claims": document["claims"],
        "rows": document["rows"],
    }
    file = file_of(document["target"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return file
