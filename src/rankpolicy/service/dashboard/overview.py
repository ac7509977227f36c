"""What the overview shows: alarms, the series of its charts, and what is said about each policy version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankpolicy.reports.charts import NUM_COLOURS, Point, Row, Series
from rankpolicy.reports.numbers import ago, moment, share, short
from rankpolicy.service.dashboard.click_drift import DAYS_PER_FALSE_ALARM
from rankpolicy.service.dashboard.rates import KEPT_SECONDS
from rankpolicy.service.dashboard.statistics import RANDOM_KINDS

MOST_BANDS = 3  # more of them hide each other
_RATES = {"lists_per_second": "lists", "events_per_second": "events"}
_DURATIONS = {
    "rank_p50_ms": "list p50",
    "rank_p99_ms": "list p99",
    "events_p50_ms": "events p50",
    "events_p99_ms": "events p99",
}
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


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """A policy version with its colour, and its name, which holds the version only where several of the policy are shown."""

    colour: int
    name: str
    policy: dict[str, Any]

    @property
    def is_certain(self) -> bool:
        """Whether every item had the propensity 1."""
        chances = self.policy["propensities"]
        return bool(0 < chances["items_with"] == chances["bins"][-1]["items"])

    @property
    def has_chances(self) -> bool:
        return bool(self.policy["propensities"]["items_with"]) and not self.is_certain

    @property
    def why_unusable(self) -> str | None:
        """Why off-policy estimates cannot use its lists."""
        certain = "nothing is random, so the log says nothing about other lists" if self.is_certain else None
        return self.policy["propensities"]["why_without"] or certain

    @property
    def columns(self) -> list[tuple[str, float, str]]:
        """Number of items by propensity: a short name, the number, and the whole name."""
        return [
            (_start(chances["from"]), chances["items"], _range(chances))
            for chances in self.policy["propensities"]["bins"]
        ]

    @property
    def groups(self) -> list[Row]:
        return [Row(group["group"], group["exposure"], group["merit"]) for group in self.policy["groups"]]

    def course(self, key: str, end: int) -> Series:
        """A share over time, in seconds before ``end``; the share of clicked lists has intervals."""
        ends = ("low", "high") if key == "rate" else ()
        points = [
            Point(
                ((point["from_us"] + point["to_us"]) / 2 - end) / 1e6,
                point[key],
                **{name: point[name] for name in ends},
                label=f"{ago((end - point['to_us']) / 1e6)}, {point['lists']:,} lists",
            )
            for point in self.policy["over_time"]
            if point[key] is not None
        ]
        return Series(self.name, self.colour, points)

    def by_position(self) -> Series:
        """Click-through by position."""
        points = [_position(counts, f", {counts['shown']:,} shown") for counts in self.policy["by_position"]]
        return Series(self.name, self.colour, points)


def overview(document: dict[str, Any]) -> dict[str, Any]:
    """The values of the template, from what ``/v1/statistics`` answers."""
    policies, rates, bias = document["policies"], document["rates"], document["position_bias"]
    versions = _versions(policies)
    # They are sorted by version.
    newest = {policy["policy"]: policy for policy in policies if policy["kind"] not in RANDOM_KINDS}
    buckets = [point for shown in versions for point in shown.policy["over_time"]]
    begin, end = min((b["from_us"] for b in buckets), default=0), max((b["to_us"] for b in buckets), default=0)
    keys = ("rate", "regret_proxy", "exploration_share")
    bias_points = [_position(counts) for counts in bias["positions"]] if bias else []
    return {
        "document": document,
        "rates": rates,
        "newest": list(newest.values())[:NUM_COLOURS],
        "versions": versions,
        "most_bands": MOST_BANDS,
        "names": {"rates": _RATES, "durations": _DURATIONS},
        "minutes": {"rates": _last_minutes(rates, _RATES), "durations": _last_minutes(rates, _DURATIONS)},
        "minutes_span": min(KEPT_SECONDS, max((30, *(point["seconds_ago"] for point in rates["points"])))),
        "courses": {key: [shown.course(key, end) for shown in versions] for key in keys},
        "course_span": max(1.0, (end - begin) / 1e6),
        "course_gap": 2.5e-6 * max((bucket["to_us"] - bucket["from_us"] for bucket in buckets), default=0),
        "positions": [shown.by_position() for shown in versions],
        "position_rows": [(shown.name, counts) for shown in versions for counts in shown.policy["by_position"]],
        "examination": [Series("examination", 2, bias_points)],
        "bias_rows": [("random lists", counts) for counts in bias["positions"]] if bias else [],
    }


def _versions(policies: list[dict[str, Any]]) -> list[ShownVersion]:
    """The versions with the most lists, by policy and version."""
    most_used = sorted(policies, key=lambda policy: -policy["lists"])[:NUM_COLOURS]
    shown = [policy for policy in policies if policy in most_used]
    num_versions = Counter(policy["policy"] for policy in shown)
    return [
        ShownVersion(
            colour,
            f"{policy['policy']} v{policy['version']}" if num_versions[policy["policy"]] > 1 else policy["policy"],
            policy,
        )
        for colour, policy in enumerate(shown)
    ]


def _last_minutes(rates: dict[str, Any], names: Mapping[str, str]) -> list[Series]:
    return [
        Series(
            name,
            colour,
            [
                Point(-point["seconds_ago"] + 2.5, point[key], label=ago(point["seconds_ago"]))
                for point in rates["points"]
                if point[key] is not None
            ],
        )
        for colour, (key, name) in enumerate(names.items())
    ]


def _position(counts: dict[str, Any], suffix: str = "") -> Point:
    label = f"position {counts['position']}{suffix}"
    return Point(counts["position"], counts["rate"], counts["low"], counts["high"], label)


def _start(value: float) -> str:
    return "0" if value == 0 else f"{value:g}".removeprefix("0")


def _range(chances: dict[str, Any]) -> str:
    return "1" if chances["from"] == chances["to"] else f"{chances['from']:g} to {chances['to']:g}"
