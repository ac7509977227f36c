"""The results that are kept with the repository: one JSON file per target, made from what ``rankpolicy reproduce`` wrote."""

from __future__ import annotations

import ast
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankpolicy.types import RankPolicyError
from reproductions import TARGETS
from reproductions.statements import Claim
from reproductions.target import Row, Target

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent / "results"
NO_SETUP = ("reproductions.statements", "reproductions.target")  # say how results are judged and run, not what is run


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
    setup
        A digest of the code of the target when it was run; empty where the run is older than that record.
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
    setup: str = ""
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
    return Result(**kept, claims=tuple(Claim.from_dict(claim) for claim in claims), rows=tuple(rows))


def setup_of(target: Target) -> str:
    """A digest of the code of a target: its module and those of the reproductions it imports, without layout, docstrings, imports."""
    seen: dict[str, str] = {}
    waiting = [target.run.__module__]
    while waiting:
        name = waiting.pop()
        file = ROOT.joinpath(*name.split(".")).with_suffix(".py")
        if name in seen or name in NO_SETUP or not file.is_file():
            continue
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("reproductions"):
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
                node.body = node.body[1:]
        seen[name] = repr(_structure(tree))
    text = "".join(f"{name} {seen[name]}" for name in sorted(seen))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _structure(node: Any) -> Any:
    """A syntax tree as nested tuples, the same for every version of Python that reads it (ast.dump is not)."""
    if isinstance(node, list):
        return tuple(_structure(each) for each in node if not isinstance(each, ast.Import | ast.ImportFrom))
    if not isinstance(node, ast.AST):
        return node
    fields = (value for name, value in ast.iter_fields(node) if name not in ("ctx", "kind", "type_comment"))
    return type(node).__name__, *(_structure(value) for value in fields if value not in (None, []))


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
        "setup": setup_of(TARGETS[document["target"]]) if document["target"] in TARGETS else "",
        "versions": record.get("versions", {}),
        "machine": record.get("machine", {}),
        "claims": [Claim.from_dict(claim).fields() for claim in document["claims"]],
        "rows": document["rows"],
    }
    file = file_of(document["target"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return file
