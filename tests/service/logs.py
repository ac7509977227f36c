"""Logs of many lists, written without HTTP in large transactions, by a clock that stands two hours before now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rankpolicy.service.domain.messages import NewEvent, RankRequest
from rankpolicy.service.domain.records import NewEvents, NewRanking, ShownList
from rankpolicy.service.domain.routing import generator_of
from rankpolicy.service.learning.live import LivePolicies
from rankpolicy.service.log.sqlite import SqliteStore
from tests.service.parts import live_policies

WINDOW = 1_000_000
AT_ONCE = 200
Clicks = Callable[[int, list[str]], list[str]]


def written_log(
    path: Path, policies: dict[str, dict[str, Any]], visits: Iterable[tuple[str, dict[str, Any]]], clicks: Clicks
) -> Path:
    """A database in which each visit, a policy and a request, got its list and its clicks; all windows have ended."""
    store = SqliteStore(path)
    now = time.time_ns() // 1000 - 7_200_000_000
    live = live_policies(store, policies, now=now)
    visits = list(visits)
    for start in range(0, len(visits), AT_ONCE):
        now += WINDOW + 1
        new = [shown_list(live, start + place, *visit) for place, visit in enumerate(visits[start : start + AT_ONCE])]
        live.learn(store.commit(new, now=now).lessons)
        happened = [event for place, one in enumerate(new) for event in _events(start + place, one, clicks)]
        live.learn(store.commit([NewEvents(events=happened, window=WINDOW)], now=now).lessons)
    live.learn(store.commit([], now=now + WINDOW + 1).lessons)
    for snapshot in [made() for made in live.copied_snapshots(every=1)]:
        store.save_snapshot(snapshot, now=now)
    store.close()
    return path


def shown_list(live: LivePolicies, number: int, policy: str, body: dict[str, Any]) -> NewRanking:
    """The list that the service would store for a request."""
    request = msgspec.convert({"ranking_id": f"r{number}", "policy": policy, **body}, RankRequest)
    asked, chosen = policy or live.default, live.chosen(policy, request.user or f"r{number}")
    ordered = chosen.order(request, generator=generator_of(b"secret", f"r{number}"))
    shown = ShownList(
        ranking_id=f"r{number}",
        policy=chosen.version.policy,
        policy_version=chosen.version.number,
        query=request.query,
        items=ordered.items,
        model_sha256=chosen.policy.model_sha256,
        scores=ordered.scores,
        propensities=ordered.propensities,
        no_propensities=ordered.no_propensities,
        propensity_draws=ordered.propensity_draws,
        mode=ordered.mode,
        requested=asked,
        change=live.change,
        memo=ordered.memo,
    )
    encoded = msgspec.json.encode(request)
    return NewRanking(
        shown=shown,
        version=chosen.version.key,
        request=encoded,
        request_hash=encoded[:16],
        window=WINDOW,
        learns=chosen.policy.learns,
    )


def _events(number: int, new: NewRanking, clicks: Clicks) -> Sequence[NewEvent]:
    return [
        NewEvent(event_id=f"{number} {item}", ranking_id=new.shown.ranking_id, item=item)
        for item in clicks(number, new.shown.items)
    ]
