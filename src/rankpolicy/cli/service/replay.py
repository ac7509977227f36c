"""rankpolicy service replay"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from rankpolicy.cli.support.options import Json
from rankpolicy.cli.support.output import console, print_json
from rankpolicy.cli.service.database import Db, NotRandom, opened

if TYPE_CHECKING:
    from rankpolicy.service.log.replay import ReplayedChoices, ReplayedPolicy

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy service replay

rankpolicy service replay --db /var/lib/rankpolicy/search.db --json
"""


def replay(db: Db = "rankpolicy.db", seed: NotRandom = 0, as_json: Json = False) -> None:
    """Check every row of the log, compute the state of every policy from it again, and compare bit by bit.

    Every list must have been ranked by the version that promotions, canaries and splits say, and snapshots must equal what the log leads
    to; the exit status is 1 if one does not. A running service is not disturbed: GET /v1/policies gives the hash of its state, to be
    compared with the one that is printed here.
    """
    store = opened(db, role="reader")
    from rankpolicy.service.log.replay import replay as replay_log
    from rankpolicy.service.log.replay import replay_choices
    from rankpolicy.service.policies.stored_versions import policy_of_version

    try:
        rows = store.check()
        choices = replay_choices(store)
        found = replay_log(store, lambda version: policy_of_version(version, store.model))
    finally:
        store.close()
    is_equal = all(policy.is_equal for policy in found) and choices.is_equal
    if as_json:
        policies = [asdict(policy) | {"is_equal": policy.is_equal} for policy in found]
        chosen = asdict(choices) | {"is_equal": choices.is_equal}
        print_json({"rows": rows, "choices": chosen, "policies": policies, "is_equal": is_equal})
    else:
        _print(rows, choices, found)
    if not is_equal:
        raise typer.Exit(1)


def _print(rows: dict[str, int], choices: ReplayedChoices, found: list[ReplayedPolicy]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    out = console()
    out.print(", ".join(f"{number:,} {table}" for table, number in rows.items()) + ": every row is as it was written")
    verdict = f"not by the right version: {', '.join(choices.wrong)}" if choices.wrong else "by the right version"
    out.print(f"{choices.lists:,} lists were ranked {verdict}, as {choices.changes} logged changes say", markup=False)
    table = Table("policy", "version", "lessons", "state (SHA-256)", "snapshots", box=SIMPLE_HEAD)
    for policy in found:
        wrong = [str(seq) for seq, is_equal in policy.snapshots.items() if not is_equal]
        verdict = f"differ at {', '.join(wrong)}" if wrong else f"{len(policy.snapshots)} equal"
        table.add_row(policy.policy, str(policy.number), f"{policy.lessons:,}", policy.state_sha256[:16], verdict)
    out.print(table)
