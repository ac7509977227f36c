"""rankpolicy service retrain

The ranker is judged by lists that it has not seen, against the version that serves. It may run beside the service, which follows a
promotion after a second. Everything is in the audit log.

Parameters
----------
config
    The TOML file of the service, with its retrain tables.
now
    Do it now; without it, only say when it is due.
policy : default all of them
    Only this policy.
db : default as the configuration says
    The database.

Examples
--------
rankpolicy service retrain --config service.toml
rankpolicy service retrain --config service.toml --now --policy search
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankpolicy.cli.service.database import now_of, opened
from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import answer
from rankpolicy.types import RankPolicyError, unknown_name

if TYPE_CHECKING:
    from rankpolicy.service.learning.retrain_settings import Retrain
    from rankpolicy.service.log.store import Store


def retrain(
    *,
    config: Path,
    now: bool = False,
    policy: str | None = None,
    db: str | None = None,
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Do what the retrain tables of a configuration say: estimate position bias, learn a ranker, judge it, promote it if better."""
    from rankpolicy.service.config import ServiceConfig, read_config

    settings = ServiceConfig(**read_config(config))
    plans = [plan for plan in settings.retrains() if policy is None or plan.policy == policy]
    if not plans:
        names = [plan.policy for plan in settings.retrains()]
        if policy is not None and names:
            raise RankPolicyError(unknown_name("policy of [[retrain]]:", policy, names))
        raise RankPolicyError(f"{config} has no [[retrain]] table. Add one, with policy = ... and method = ...")
    if now:
        for plan in plans:
            plan.check_method()
    with opened(settings.place if db is None else db, role="keys") as store:
        outcomes = [_retrained(store, plan) if now else _due(store, plan) for plan in plans]
    answer({"retrain": outcomes}, "\n".join(map(_line, outcomes)), as_json=as_json)


def _retrained(store: Store, plan: Retrain) -> dict[str, Any]:
    from rankpolicy.service.learning.retrain import retrain as learn_and_judge

    return {"policy": plan.policy} | learn_and_judge(store, plan, now=now_of(store), author="command line")


def _due(store: Store, plan: Retrain) -> dict[str, Any]:
    stamps = [change.stamp for change in store.changes() if (change.action, change.policy) == ("retrain", plan.policy)]
    last = None if not stamps else datetime.fromtimestamp(stamps[-1] / 1e6, UTC).isoformat(timespec="seconds")
    return {"policy": plan.policy, "every_hours": plan.every_hours, "last": last}


def _line(outcome: dict[str, Any]) -> str:
    if "decision" not in outcome:
        last = outcome["last"] or "never"
        return f"{outcome['policy']}: every {outcome['every_hours']:g} hours, last {last}. Now: --now."
    if outcome["decision"] == "kept":
        line = f"{outcome['policy']}: nothing was promoted: {outcome['why']}"
    else:
        line = f"{outcome['policy']}: version {outcome['version']} was promoted"
    if "judged" in outcome:
        against = outcome["judged"]["against"]
        low, high = against["interval"]
        line += f"; difference per list {against['difference']:+.4f} [{low:+.4f}, {high:+.4f}]"
    return line + "."
