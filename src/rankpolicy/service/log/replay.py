"""Proof that the states are what the log says: every row checked, every lesson and every state computed again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

import msgspec

from rankpolicy.service.domain.deployments import deployments
from rankpolicy.service.domain.records import PolicyVersion
from rankpolicy.service.domain.routing import Routing, by_number
from rankpolicy.service.learning.live import LESSONS_AT_ONCE, LivePolicy
from rankpolicy.service.log.store import Store
from rankpolicy.service.policies.members import SERVED
from rankpolicy.service.policies.served_policy import ServedPolicy

_MOST_NAMED = 10


class _Asked(msgspec.Struct):
    user: str | None = None


_ASKED = msgspec.json.Decoder(_Asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedPolicy:
    """What the log says about a policy version."""

    policy: str
    number: int
    kind: str
    lessons: int
    last_lesson: int
    state_sha256: str
    snapshots: dict[int, bool]

    @property
    def is_equal(self) -> bool:
        """Whether all snapshots are what the log says."""
        return all(self.snapshots.values())


def replay(
    store: Store, made_policy: Callable[[PolicyVersion], ServedPolicy], *, until: int | None = None
) -> list[ReplayedPolicy]:
    """Fold the log from its beginning, for every version of every policy that learns."""
    learners = [version for version in store.versions() if SERVED.named(version.kind).learns]
    return [_replayed(store, version, made_policy(version), until) for version in learners]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedChoices:
    """Whether every list was ranked by the version that the log of changes says."""

    lists: int
    changes: int
    wrong: list[str]

    @property
    def is_equal(self) -> bool:
        """Whether there is none."""
        return not self.wrong


def replay_choices(store: Store) -> ReplayedChoices:
    """Choose the version of every list again: by the changes known when it was shown, the splits, and the hash of its user or id."""
    changes, versions, secret = store.changes(), by_number(store.versions()), store.secret()
    routings: dict[int, Routing] = {}
    lists = 0
    wrong: list[str] = []
    for version, shown, request in store.shown_lists():
        if shown.requested is None:  # of a database from before there were changes
            continue
        if shown.change not in routings:
            deployed = deployments(changes[: shown.change])
            routings[shown.change] = Routing(deployed=deployed, versions=versions, secret=secret)
        unit = _ASKED.decode(request).user or shown.ranking_id
        lists += 1
        if routings[shown.change].version(shown.requested, unit).key != version and len(wrong) < _MOST_NAMED:
            wrong.append(shown.ranking_id)
    return ReplayedChoices(lists=lists, changes=len(changes), wrong=wrong)


def _replayed(store: Store, version: PolicyVersion, policy: ServedPolicy, until: int | None) -> ReplayedPolicy:
    live = LivePolicy(version=version, policy=policy)
    live.begin(store)
    snapshots = {snapshot.seq: snapshot for snapshot in store.snapshots(version.key) if snapshot.seq >= live.applied}
    equal: dict[int, bool] = {}
    num_lessons, start = 0, live.applied
    stops = sorted(seq for seq in snapshots if until is None or seq <= until)
    for stop in [*stops, until]:
        lessons = store.lessons(version.key, after=start, until=stop)
        while block := list(islice(lessons, LESSONS_AT_ONCE)):
            live.learn(block)
            num_lessons += len(block)
        if stop in snapshots:
            equal[stop] = snapshots[stop].is_sound and policy.state() == snapshots[stop].state
            start = stop
    return ReplayedPolicy(
        policy=version.policy,
        number=version.number,
        kind=version.kind,
        lessons=num_lessons,
        last_lesson=live.applied,
        state_sha256=sha256(policy.state()).hexdigest(),
        snapshots=equal,
    )
