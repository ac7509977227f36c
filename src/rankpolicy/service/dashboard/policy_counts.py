"""Counts of one policy version: clicks by position, exposure by group, propensities, and its course over time."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from rankpolicy.service.dashboard.click_drift import ClickDrift, DriftBuckets
from rankpolicy.service.dashboard.click_rates import ClickMoments, UpliftOverRandom, share_with_interval
from rankpolicy.service.dashboard.query_table import ItemCounts, QueryCounts
from rankpolicy.service.dashboard.time_course import Bucket, SampledList, TimeCourse

MOST_POSITIONS = 20
MOST_GROUPS = 12
OTHER_GROUPS = "(other groups)"
NO_GROUP = "(no group)"
BIN_STARTS = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # the last bin holds what is certain
_WEIGHTS = [1 / math.log2(1 + rank) for rank in range(1, 2_001)]  # of exposure, "log2" elsewhere in the package


class PolicyCounts:
    """What one version of a policy did."""

    def __init__(self, policy: str, version: int, kind: str, generator: random.Random, window: int) -> None:
        self.policy, self.version, self.kind = policy, version, kind
        self._generator = generator
        self.lists_with_click = 0
        self.moments = ClickMoments()
        self.over_random = UpliftOverRandom()
        self._drift = DriftBuckets(ClickDrift(random.Random(0)), window)
        self.shown = [0] * MOST_POSITIONS
        self.clicked = [0] * MOST_POSITIONS
        self.course = TimeCourse(generator)
        self._exposure: dict[str, float] = {}
        self._lists_with_groups = 0
        self._bins = [0] * len(BIN_STARTS)
        self._weights = self._squares = 0.0
        self._without = 0
        self._why_without: str | None = None

    def add_list(self, stamp: int, length: int) -> tuple[Bucket, int] | None:
        """Count a shown list; where it goes if it is one of the sample, for ``keep``."""
        self.moments.lists += 1
        self._drift.add_list(stamp)
        for position in range(min(length, MOST_POSITIONS)):
            self.shown[position] += 1
        bucket = self.course.at(stamp)
        bucket.lists += 1
        index = bucket.index_for_next(self._generator)
        return None if index is None else (bucket, index)

    def keep(
        self,
        slot: tuple[Bucket, int],
        query: QueryCounts,
        shown: Sequence[ItemCounts | None],
        candidates: Sequence[ItemCounts | None],
    ) -> None:
        """Keep a list in the sample."""
        bucket, index = slot
        bucket.put(index, _sampled(query, shown, candidates))

    def add_groups(self, groups: Sequence[str | None]) -> None:
        """Count the exposure of groups in a list; nothing where no item has a group."""
        if all(group is None for group in groups):
            return
        self._lists_with_groups += 1
        total = sum(_WEIGHTS[: len(groups)])
        for weight, group in zip(_WEIGHTS, groups, strict=False):
            name = NO_GROUP if group is None else group
            if name not in self._exposure and len(self._exposure) >= MOST_GROUPS:
                name = OTHER_GROUPS
            self._exposure[name] = self._exposure.get(name, 0.0) + weight / total

    def add_propensities(self, propensities: Sequence[float] | None, why_none: str | None) -> None:
        """Count the propensities of a list."""
        if propensities is None:
            self._without += 1
            self._why_without = why_none
            return
        for value in propensities:
            if value > 0:
                self._bins[bisect_right(BIN_STARTS, value) - 1] += 1
                self._weights += 1 / value
                self._squares += 1 / value**2

    @property
    def lists(self) -> int:
        """Lists that it showed."""
        return self.moments.lists

    def add_click(self, stamp: int, position: int, *, before: int) -> None:
        """Count the first click on an item of a list."""
        self.moments.add_click(before)
        if position < MOST_POSITIONS:
            self.clicked[position] += 1
        if not before:
            self.lists_with_click += 1
            self._drift.add_clicked_list(stamp)
            self.course.at(stamp).with_click += 1

    def document(self) -> dict[str, Any]:
        """The counts, and what follows from them."""
        estimates: dict[ItemCounts, float] = {}
        for _, bucket in self.course.all():
            for sampled in bucket.sample:
                for item in sampled.candidates:
                    if item not in estimates:
                        estimates[item] = sampled.query.estimate(item)
        course = [self._point(start, bucket, estimates) for start, bucket in self.course.all()]
        return {
            "policy": self.policy,
            "version": self.version,
            "kind": self.kind,
            "lists": self.lists,
            "lists_with_click": self.lists_with_click,
            "clicks": self.moments.clicks,
            "click_share": share_with_interval(self.lists_with_click, self.lists),
            "by_position": [
                {"position": position + 1, "shown": shown, "clicked": clicked} | share_with_interval(clicked, shown)
                for position, (shown, clicked) in enumerate(zip(self.shown, self.clicked, strict=True))
                if shown
            ],
            "regret_proxy": _mean_of(course, "regret_proxy"),
            "exploration_share": _mean_of(course, "exploration_share"),
            "over_random": self.over_random.document(),
            "click_drift": self._last_change(),
            "over_time": course,
            "groups": self._groups(estimates),
            "propensities": self._propensities(),
        }

    def _last_change(self) -> dict[str, Any] | None:
        drift = self._drift.drift
        if drift.changed_at is None:
            return None
        return {"changed_at_us": drift.changed_at, "rate_before": drift.rate_before, "rate_after": drift.rate_after}

    def _point(self, start: int, bucket: Bucket, estimates: Mapping[ItemCounts, float]) -> dict[str, Any]:
        regrets = [_regret(sampled, estimates) for sampled in bucket.sample]
        explored = [sampled.explored for sampled in bucket.sample]
        return {
            "from_us": start,
            "to_us": start + self.course.width,
            "lists": bucket.lists,
            "lists_with_click": bucket.with_click,
            **share_with_interval(bucket.with_click, bucket.lists),
            "regret_proxy": sum(regrets) / len(regrets) if regrets else None,
            "exploration_share": sum(explored) / len(explored) if explored else None,
        }

    def _groups(self, estimates: Mapping[ItemCounts, float]) -> list[dict[str, Any]]:
        if not self._exposure:
            return []
        merits: dict[str, float] = {}
        num_lists = 0
        for _, bucket in self.course.all():
            for sampled in bucket.sample:
                total = sum(estimates[item] for item in sampled.candidates)
                if total and any(item.group is not None for item in sampled.candidates):
                    num_lists += 1
                    for item in sampled.candidates:
                        name = NO_GROUP if item.group is None else item.group
                        name = name if name in self._exposure else OTHER_GROUPS
                        merits[name] = merits.get(name, 0.0) + estimates[item] / total
        return [
            {
                "group": name,
                "exposure": exposure / self._lists_with_groups,
                "merit": merits.get(name, 0.0) / num_lists if num_lists else None,
            }
            for name, exposure in sorted(self._exposure.items())
        ]

    def _propensities(self) -> dict[str, Any]:
        num_items = sum(self._bins)
        ends = (*BIN_STARTS[1:], 1.0)
        return {
            "items_with": num_items,
            "lists_without": self._without,
            "why_without": self._why_without,
            "bins": [
                {"from": start, "to": end, "items": number}
                for start, end, number in zip(BIN_STARTS, ends, self._bins, strict=True)
            ],
            "effective_sample_size": self._weights**2 / self._squares if num_items else None,
        }


def _sampled(
    query: QueryCounts, shown: Sequence[ItemCounts | None], candidates: Sequence[ItemCounts | None]
) -> SampledList:
    were = tuple(item for item in shown if item is not None)
    could = tuple(dict.fromkeys([*(item for item in candidates if item is not None), *were]))
    best = set(map(id, sorted(could, key=query.estimate, reverse=True)[: len(were)]))
    threshold = min((query.estimate(item) for item in could if id(item) in best), default=0.0)
    # Items that equal the last of the best count as best: among items of which nothing is known there is no better choice.
    explored = sum(query.estimate(item) < threshold for item in were) / len(were) if were else 0.0
    return SampledList(query, could, were, explored)


def _regret(sampled: SampledList, estimates: Mapping[ItemCounts, float]) -> float:
    """How much likelier a click would be on the best list than on this one, by the estimates of now."""
    best = sorted([estimates[item] for item in sampled.candidates], reverse=True)[: len(sampled.shown)]
    return math.prod([1 - estimates[item] for item in sampled.shown]) - math.prod([1 - value for value in best])


def _mean_of(points: list[dict[str, Any]], name: str) -> float | None:
    values = [(point["lists"], point[name]) for point in points if point[name] is not None]
    total = sum(lists for lists, _ in values)
    return sum(lists * value for lists, value in values) / total if total else None
