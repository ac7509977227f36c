"""What an operator should look at now."""

from __future__ import annotations

from typing import Any

from rankpolicy.reports.numbers import ago, moment, share, short
from rankpolicy.service.dashboard.click_drift import DAYS_PER_FALSE_ALARM

FEWEST_EVENTS = 50  # below, a share of late events says little
LATE_SHARE = 0.05
SLOW_MS = 100.0  # p99 of a list
FREE_SHARE, FREE_BYTES = 0.05, 1 << 30
DRIFT_SHOWN_US = 86_400_000_000  # a day


def alarms_of(document: dict[str, Any]) -> list[dict[str, str]]:
    """Name, level ("alarm" or "notice") and text of everything that is wrong, the worst first."""
    health, recent = document["health"], document["rates"]["last_minutes"]
    span = ago(recent["seconds"]).removesuffix(" ago")
    alarms = {}
    if health["failure"] is not None:
        alarms["readiness"] = f"Not ready: {health['failure']}"
    free, total = health["disk_free_bytes"], health["disk_total_bytes"]
    if free is not None and free < max(FREE_BYTES, FREE_SHARE * total):
        alarms["disk"] = f"The disk of the database has {short(free / 1e9)} GB left of {short(total / 1e9)}."
    if recent["failures"]:
        alarms["failures"] = (
            f"{recent['failures']:,} of {recent['requests']:,} requests failed (5xx) in the last {span}."
        )
    p99 = recent["rank_p99_ms"]
    if p99 is not None and p99 > SLOW_MS:
        alarms["slow"] = f"p99 of a list is {short(p99)} ms in the last {span}; it should stay below {SLOW_MS:g} ms."
    late, events = recent["late_events"], recent["events"]
    if events >= FEWEST_EVENTS and late > LATE_SHARE * events:
        alarms["late"] = (
            f"{share(late / events)} of the events in the last {span} came after the window of their list: raise window_seconds."
        )
    drifted = [policy for policy in document["policies"] if _has_drifted(policy, document["until_us"])]
    return [{"name": name, "level": "alarm", "text": text} for name, text in alarms.items()] + [
        _drift_alarm(policy) for policy in drifted
    ]


def _has_drifted(policy: dict[str, Any], now: int) -> bool:
    drift = policy["click_drift"]
    return drift is not None and now - drift["changed_at_us"] < DRIFT_SHOWN_US


def _drift_alarm(policy: dict[str, Any]) -> dict[str, str]:
    drift = policy["click_drift"]
    fell = drift["rate_after"] < drift["rate_before"]
    text = (
        f"Lists of {policy['policy']} v{policy['version']} with a click {'fell' if fell else 'rose'} from {share(drift['rate_before'])} to "
        f"{share(drift['rate_after'])} at {moment(drift['changed_at_us'])} (change-point test, at most one false alarm in "
        f"{DAYS_PER_FALSE_ALARM:g} days on average)."
    )
    return {"name": "drift", "level": "alarm" if fell else "notice", "text": text}
