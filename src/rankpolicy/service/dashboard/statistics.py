"""Statistics of the service: a fold of the log in bounded memory."""

from __future__ import annotations

import random
import threading
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter
from typing import Any

import msgspec

from rankpolicy.service.dashboard.click_rates import ratio_with_interval, weights_of_random
from rankpolicy.service.dashboard.log_follower import EventRow, ListRow, LoggedRequest
from rankpolicy.service.dashboard.policy_counts import MOST_POSITIONS, PolicyCounts
from rankpolicy.service.dashboard.query_table import ItemCounts, QueryCounts, QueryTable
from rankpolicy.service.domain.messages import CLICK
from rankpolicy.service.domain.records import PolicyVersion

MOST_LISTS = 50_000  # lists whose clicks are still waited for; clicks on older ones are counted apart
MOST_WITH_ITEMS = 5_000  # of them, lists whose clicks still count for their items
MOST_VERSIONS = 32
# Every item is equally likely at every position, so clicks by position show position bias alone.
RANDOM_KINDS = ("uniform",)
SHOWN_QUERIES = 50

_REQUEST = msgspec.json.Decoder(LoggedRequest)


@dataclass(slots=True)
class _OpenList:
    counts: PolicyCounts
    stamp: int
    query: QueryCounts | None
    shown: tuple[ItemCounts | None, ...]
    weights: array[float] | None  # of its first items for random lists
    weighted: float = 0.0  # sum of the weights of clicked positions
    clicked: int = 0  # a bit per position
    last: int = -1


class Statistics:
    """What the dashboard shows about lists and clicks. One thread adds, others read."""

    def __init__(self, window: int = 60_000_000) -> None:
        self._window = window
        self._lock = threading.Lock()  # the thread that follows the log adds rows while pages are made
        self._generator = random.Random(0)
        self._versions: OrderedDict[int, PolicyCounts] = OrderedDict()
        self._open: OrderedDict[int, _OpenList] = OrderedDict()
        self._with_items: deque[_OpenList] = deque()
        self._events: Counter[str] = Counter()
        self._types: Counter[str] = Counter()
        self._left_out = 0
        self._since: int | None = None
        self._until: int | None = None
        self.queries = QueryTable()

    def add(self, lists: Sequence[ListRow], events: Sequence[EventRow], versions: Mapping[int, PolicyVersion]) -> None:
        """Count a part of the log."""
        with self._lock:
            # In the order of the log, so that the statistics do not depend on where parts of it begin.
            rows: Iterable[ListRow | EventRow] = merge(lists, events, key=attrgetter("seq"))
            for row in rows:
                if isinstance(row, EventRow):
                    self._add_event(row)
                else:
                    self._add_list(row, versions)

    def document(self) -> dict[str, Any]:
        """Everything, as plain values."""
        with self._lock:
            policies = [
                counts.document() | {"over_version_before": self._over_version_before(counts)}
                for counts in self._versions.values()
            ]
            return {
                "since_us": self._since,
                "until_us": self._until,
                "lists": sum(counts.lists for counts in self._versions.values()),
                "events": dict(self._events),
                "event_types": dict(self._types),
                "clicks_on_older_lists": self._left_out,
                "policies": sorted(policies, key=lambda policy: (policy["policy"], policy["version"])),
                "position_bias": self._position_bias(),
                "queries": [
                    {"query": counts.query, "lists": counts.lists, "clicks": counts.clicked, "items": len(counts.items)}
                    for counts in self.queries.all()[:SHOWN_QUERIES]
                ],
            }

    def query(self, query: str) -> dict[str, Any] | None:
        """What is known about a query; None where it is not among the last ones."""
        with self._lock:
            counts = self.queries.known(query)
            if counts is None:
                return None
            items = [
                {
                    "id": item.name,
                    "group": item.group,
                    "shown": item.shown,
                    "seen": item.seen,
                    "clicked": item.clicked,
                    "estimate": counts.estimate(item),
                }
                for item in counts.items.values()
            ]
            return {
                "query": query,
                "lists": counts.lists,
                "clicks": counts.clicked,
                "items": sorted(items, key=lambda item: -item["estimate"]),
                "last_lists": [(seq, self._clicks_on(seq)) for seq in reversed(counts.last_lists)],
            }

    def _over_version_before(self, counts: PolicyCounts) -> dict[str, Any] | None:
        older = [
            other
            for other in self._versions.values()
            if other.policy == counts.policy and other.version < counts.version
        ]
        if not older:
            return None
        before = max(older, key=lambda other: other.version)
        uplift = counts.moments.over(before.moments)
        return None if uplift is None else {"version": before.version} | uplift

    def _clicks_on(self, seq: int) -> int:
        open_list = self._open.get(seq)
        return 0 if open_list is None else open_list.clicked

    def _add_list(self, row: ListRow, versions: Mapping[int, PolicyVersion]) -> None:
        self._since = row.stamp if self._since is None else self._since
        self._until = row.stamp
        counts = self._counts(row, versions)
        query = self.queries.asked(row.shown.query)
        names = row.shown.items
        slot = counts.add_list(row.stamp, len(names))
        if slot is not None or any(name not in query.items for name in names):
            # The request is read only where something new may be in it: it is longer than everything else.
            items = _REQUEST.decode(row.request).items
            candidates = [query.item(item.id, item.group) for item in items]
            group_of = {item.id: item.group for item in items}
            groups = [group_of.get(name) for name in names]
        else:
            candidates, groups = [], [query.items[name].group for name in names]
        shown = tuple(query.item(name) for name in names)
        if slot is not None:
            counts.keep(slot, query, shown, candidates)
        counts.add_groups(groups)
        counts.add_propensities(row.shown.propensities, row.shown.no_propensities)
        query.mark_shown(shown)
        query.last_lists.append(row.seq)
        steps, weights = row.shown.propensities, None
        if steps is not None and counts.kind not in RANDOM_KINDS:
            weights = weights_of_random(steps, len(candidates) or len(_REQUEST.decode(row.request).items))
        if weights is not None:
            counts.over_random.add_list(weights)
        self._open[row.seq] = new = _OpenList(counts, row.stamp, query, shown, weights)
        self._with_items.append(new)
        if len(self._open) > MOST_LISTS:
            self._open.popitem(last=False)
        if len(self._with_items) > MOST_WITH_ITEMS:
            old = self._with_items.popleft()
            old.query, old.shown = None, ()

    def _add_event(self, event: EventRow) -> None:
        if event.fate != "attached":
            self._events[event.fate] += 1
            self._types[event.type if event.type in self._types or len(self._types) < 16 else "(others)"] += 1
        if event.fate not in ("accepted", "attached") or event.type != CLICK:
            return
        shown = self._open.get(event.ranking_seq or 0)
        if shown is None or event.position is None:
            self._left_out += 1
            return
        bit = 1 << event.position
        if shown.clicked & bit:
            return
        before = shown.clicked.bit_count()
        shown.counts.add_click(shown.stamp, event.position, before=before)
        if shown.weights is not None:
            weight = shown.weights[event.position]
            shown.counts.over_random.add_click(weight, clicks=before, weighted=shown.weighted)
            shown.weighted += weight
        if shown.query is not None:
            shown.query.mark_clicked(shown.shown, event.position, last=shown.last)
        shown.clicked |= bit
        shown.last = max(shown.last, event.position)

    def _counts(self, row: ListRow, versions: Mapping[int, PolicyVersion]) -> PolicyCounts:
        counts = self._versions.get(row.version)
        if counts is None:
            kind = versions[row.version].kind if row.version in versions else ""
            counts = PolicyCounts(row.shown.policy, row.shown.policy_version, kind, self._generator, self._window)
            self._versions[row.version] = counts
            if len(self._versions) > MOST_VERSIONS:
                self._versions.popitem(last=False)
        else:
            self._versions.move_to_end(row.version)
        return counts

    def _position_bias(self) -> dict[str, Any] | None:
        """Clicks by position of random lists, divided by those at the first: the probability that a position is examined."""
        random_ones = [counts for counts in self._versions.values() if counts.kind in RANDOM_KINDS]
        shown = [sum(counts.shown[position] for counts in random_ones) for position in range(MOST_POSITIONS)]
        clicked = [sum(counts.clicked[position] for counts in random_ones) for position in range(MOST_POSITIONS)]
        if not clicked[0]:
            return None
        points = []
        for position in range(MOST_POSITIONS):
            ratio = ratio_with_interval(clicked[position], shown[position], clicked[0], shown[0])
            if ratio is not None:
                bias = {"rate": 1.0, "low": None, "high": None} if position == 0 else ratio
                points.append({"position": position + 1, "shown": shown[position], "clicked": clicked[position]} | bias)
        return {"policies": sorted({counts.policy for counts in random_ones}), "positions": points}
