"""rankpolicy reproduce

A statement holds, is contradicted, or is not shown where intervals include both. The exit status is 1 when one is contradicted.
Works in a checkout of the repository; an installed wheel has no reproductions.

Parameters
----------
target : PAPER/TABLE
    What to run; see --list.
show_list : --list
    List what can be run, and stop.
smoke
    Run the same code on little data: takes seconds, and claims do not count.
data
    The folder of the datasets.
out : default runs/PAPER/TABLE
    A directory for the table, the figures, reproduce.json and run.json.
device
    Device that trains networks: cpu or cuda.

Examples
--------
rankpolicy reproduce --list
rankpolicy reproduce fair-pg-rank/figure1 --out runs/figure1
rankpolicy reproduce fair-pg-rank/table1 --data DATA --smoke --json
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import csv_text, facts_of_file, images, print_json, show, show_table, styled
from rankpolicy.cli.support.run import Files, Run
from rankpolicy.types import RankPolicyError, check_name

if TYPE_CHECKING:
    from reproductions import Outcome, Target
    from reproductions.statements import Judged


A_STATEMENT_IS_CONTRADICTED = 1
PACKAGE = "reproductions"
CHECKOUT = Path(__file__).resolve().parents[3]  # where the repository is, when the package is used from one


def reproduce(
    target: str = "",
    *,
    show_list: bool = False,
    smoke: bool = False,
    data: Annotated[Path | None, typer.Option(envvar="RANKPOLICY_DATA", show_envvar=True)] = None,
    out: Path | None = None,
    device: str = "cpu",
    work: options.ParallelWork,
    run: Run,
) -> None:
    """Run a table or figure of a paper again: our numbers next to the paper's, and a verdict on each of its statements."""
    targets = known_targets()
    if show_list:
        _show_list(targets, run.as_json)
        return
    if not target:
        raise RankPolicyError(f"name what to run, one of: {', '.join(targets)}.")
    check_name("target", target, targets)
    from rankpolicy.rankers.networks.network import usable_device
    from reproductions import Setup, judged

    usable_device(device)
    commit = _commit()
    run.make_directory(out or Path("runs") / target)
    with work.opened() as executor:
        setup = Setup(data=data, seed=run.seed, is_smoke=smoke, device=device, executor=executor, report=run.note)
        folders = {dataset: setup.folder(dataset) for dataset in targets[target].datasets}
        outcome = targets[target].run(setup)
    statements = judged(targets[target].statements, outcome.claims)
    run.finish(
        {
            "target": target,
            "rows": list(outcome.rows),
            "statements": [judgement.to_dict() for judgement in statements],
            "claims": [claim.to_dict() for claim in outcome.claims],
            "smoke": smoke,
            "commit": commit,
        },
        data={dataset: facts_of_file(folder) for dataset, folder in folders.items()},
        settings={"target": target, "smoke": smoke, "device": device},
        show_results=lambda: _show_outcome(target, outcome, statements, run.directory),
        files=lambda _: _files(outcome),
    )
    if any(judgement.verdict == "contradicted" for judgement in statements) and not smoke:
        raise typer.Exit(A_STATEMENT_IS_CONTRADICTED)


def known_targets() -> Mapping[str, Target]:
    """The tables and figures that can be run, by name; an error where the reproductions are not installed."""
    if not (CHECKOUT / PACKAGE / "target.py").is_file():
        raise RankPolicyError(
            "the reproductions of the papers are in the repository, not in the installed package: clone the repository and run "
            "'pip install -e .' in it."
        )
    if str(CHECKOUT) not in sys.path:
        sys.path.append(str(CHECKOUT))
    targets: Mapping[str, Target] = importlib.import_module(PACKAGE).TARGETS
    return targets


def _commit() -> str | None:
    """The commit of the checkout, with a plus sign when reproductions or package differ from it; None where git cannot say."""
    git = ["git", "-C", str(CHECKOUT)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--", PACKAGE, "src"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+" if changed.strip() else head


def _show_list(targets: Mapping[str, Target], as_json: bool) -> None:
    if as_json:
        listed = [{"target": t.name, "what": t.what, "datasets": list(t.datasets)} for t in targets.values()]
        print_json({"targets": listed})
        return
    rows = [(target.name, target.what, ", ".join(target.datasets) or "nothing") for target in targets.values()]
    show_table(("target", "what", "reads"), rows, numbers_from=None)


def _files(outcome: Outcome) -> Files:
    columns = _columns(outcome.rows)
    files: dict[str, str | bytes] = {
        "rows.csv": csv_text(columns, ([row.get(name, "") for name in columns] for row in outcome.rows))
    }
    for name, figure in outcome.figures.items():
        files |= images(name, figure)
    return files


def _show_outcome(target: str, outcome: Outcome, statements: Sequence[Judged], directory: Path | None) -> None:
    columns = _columns(outcome.rows)
    rows = [[_cell(row.get(column)) for column in columns] for row in outcome.rows]
    show_table(columns, rows, numbers_from=None, title=target)
    claims = [(claim.claim, claim.paper, claim.ours, _verdict(claim.verdict)) for claim in outcome.claims]
    show_table(("claim", "paper", "ours", "verdict"), claims, numbers_from=None, title="claims")
    judgements = [
        (judged.statement.words, str(judged.statement.origin), _verdict(judged.verdict), judged.counts)
        for judged in statements
    ]
    show_table(("statement", "whose", "verdict", "claims"), judgements, numbers_from=None, title="statements")
    show(f"written to {directory}")


def _verdict(verdict: str) -> Any:
    return styled(verdict, "bold red") if verdict == "contradicted" else str(verdict)


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
