"""rankpolicy service retrain"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from rankpolicy.cli.support.options import Json
from rankpolicy.cli.support.output import note, print_json
from rankpolicy.cli.service.database import NotRandom, now_of, opened
from rankpolicy.types import RankPolicyError, unknown_name

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy service retrain --config service.toml

rankpolicy service retrain --config service.toml --now --policy search
"""


def retrain(
    config: Annotated[
        Path, typer.Option(help="The TOML file of the service, with its retrain tables.", show_default=False)
    ],
    now: Annotated[bool, typer.Option("--now", help="Do it now; without it, only say when it is due.")] = False,
    policy: Annotated[str | None, typer.Option(help="Only this policy.", show_default="all of them")] = None,
    db: Annotated[
        str | None, typer.Option("--db", help="The database.", show_default="as the configuration says")
    ] = None,
    seed: NotRandom = 0,
    as_json: Json = False,
) -> None:
    """Do what the retrain tables of a configuration say: estimate position bias, learn a ranker, judge it, promote it if better.

    The ranker is judged by lists that it has not seen, against the version that serves. It may run beside the service, which follows a
    promotion after a second. Everything is in the audit log.
    """
    from rankpolicy.service.config import ServiceConfig, read_config

    told = ServiceConfig(**read_config(config))
    wanted = [one for one in told.retrains() if policy is None or one.policy == policy]
    if not wanted:
        names = [one.policy for one in told.retrains()]
        if policy is not None and names:
            raise RankPolicyError(unknown_name("policy of [[retrain]]:", policy, names))
        raise RankPolicyError(f"{config} has no [[retrain]] table. Add one, with policy = ... and method = ...")
    if now:
        for one in wanted:
            one.check_method()
    store = opened(told.place if db is None else db, role="keys")
    found: list[dict[str, Any]] = []
    try:
        for one in wanted:
            if now:
                from rankpolicy.service.learning.retrain import retrain as learn_and_judge

                found.append(
                    {"policy": one.policy} | learn_and_judge(store, one, now=now_of(store), who="command line")
                )
            else:
                done = [
                    change.stamp
                    for change in store.changes()
                    if (change.action, change.policy) == ("retrain", one.policy)
                ]
                last = None if not done else datetime.fromtimestamp(done[-1] / 1e6, UTC).isoformat(timespec="seconds")
                found.append({"policy": one.policy, "every_hours": one.every_hours, "last": last})
    finally:
        store.close()
    if as_json:
        print_json({"retrain": found})
        return
    for one_found in found:
        note(_line(one_found))


def _line(found: dict[str, Any]) -> str:
    if "decision" not in found:
        last = found["last"] or "never"
        return f"{found['policy']}: every {found['every_hours']:g} hours, last {last}. Now: --now."
    if found["decision"] == "kept":
        line = f"{found['policy']}: nothing was promoted: {found['why']}"
    else:
        line = f"{found['policy']}: version {found['version']} was promoted"
    if "judged" in found:
        against = found["judged"]["against"]
        low, high = against["interval"]
        line += f"; difference per list {against['difference']:+.4f} [{low:+.4f}, {high:+.4f}]"
    return line + "."
