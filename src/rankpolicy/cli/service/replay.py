"""rankpolicy service replay

Every list must have been ranked by the version that promotions, canaries and splits say, and snapshots must equal what the log leads
to; the exit status is 1 if one does not. A running service is not disturbed: GET /v1/policies gives the hash of its state, to be
compared with the one that is printed here.

Examples
--------
rankpolicy service replay
rankpolicy service replay --db /var/lib/rankpolicy/search.db --json
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from rankpolicy.cli.service.database import Db, opened
from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import print_json, show, show_table

if TYPE_CHECKING:
    from rankpolicy.service.log.replay import ReplayedChoices, ReplayedPolicy


def replay(
    *,
    db: Db = "rankpolicy.db",
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Check every row of the log, compute the state of every policy from it again, and compare bit by bit."""
    with opened(db, role="reader") as store:
        from rankpolicy.service.log.replay import replay as replay_log, replay_choices
        from rankpolicy.service.policies.policy_settings import policy_of_version

        rows = store.check()
        choices = replay_choices(store)
        replayed = replay_log(store, lambda version: policy_of_version(version, store.model))
    is_equal = all(policy.is_equal for policy in replayed) and choices.is_equal
    if as_json:
        policies = [asdict(policy) | {"is_equal": policy.is_equal} for policy in replayed]
        chosen = asdict(choices) | {"is_equal": choices.is_equal}
        print_json({"rows": rows, "choices": chosen, "policies": policies, "is_equal": is_equal})
    else:
        _show(rows, choices, replayed)
    if not is_equal:
        raise typer.Exit(1)


def _show(rows: dict[str, int], choices: ReplayedChoices, replayed: list[ReplayedPolicy]) -> None:
    show(", ".join(f"{number:,} {table}" for table, number in rows.items()) + ": every row is as it was written")
    verdict = f"not by the right version: {', '.join(choices.wrong)}" if choices.wrong else "by the right version"
    show(f"{choices.lists:,} lists were ranked {verdict}, as {choices.changes} logged changes say")
    policies = []
    for policy in replayed:
        wrong = [str(seq) for seq, is_equal in policy.snapshots.items() if not is_equal]
        verdict = f"differ at {', '.join(wrong)}" if wrong else f"{len(policy.snapshots)} equal"
        state = policy.state_sha256[:16]
        policies.append((policy.policy, str(policy.number), f"{policy.lessons:,}", state, verdict))
    show_table(("policy", "version", "lessons", "state (SHA-256)", "snapshots"), policies, numbers_from=None)
