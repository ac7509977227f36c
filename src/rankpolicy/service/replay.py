"""Proof that the states are what the log says: every row checked, every lesson and every state computed again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

from rankpolicy.service.live import LESSONS_AT_ONCE, LivePolicy
from rankpolicy.service.policies.members import SERVED
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.service.records import PolicyVersion
from rankpolicy.service.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedPolicy:
    """What the log says about a policy version.

    Parameters
    ----------
    policy, number, kind
        Name, number and kind of the version.
    lessons
        Lists that were learned.
    last_lesson
        Place of the last one in the log; 0 for none.
    state_sha256
        Hash of the state after all of them.
    snapshots
        Place of every snapshot, and whether the log leads to the same bytes there.
    """

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
    store: Store, made: Callable[[PolicyVersion], ServedPolicy], *, until: int | None = None
) -> list[ReplayedPolicy]:
    """Fold the log from its beginning, for every version of every policy that learns.

    Parameters
    ----------
    store
        The log.
    made
        Makes the policy of a version, knowing nothing.
    until
        The last lesson that counts; None: all.
    """
    learners = [version for version in store.versions() if SERVED.named(version.kind).learns]
    return [_replayed(store, version, made(version), until) for version in learners]


def _replayed(store: Store, version: PolicyVersion, policy: ServedPolicy, until: int | None) -> ReplayedPolicy:
    live = LivePolicy(version=version, policy=policy)
    found = {snapshot.seq: snapshot for snapshot in store.snapshots(version.key)}
    equal: dict[int, bool] = {}
    num_lessons, start = 0, 0
    stops = sorted(seq for seq in found if until is None or seq <= until)
    for stop in [*stops, until]:
        lessons = store.lessons(version.key, after=start, until=stop)
        while block := list(islice(lessons, LESSONS_AT_ONCE)):
            live.learn(block)
            num_lessons += len(block)
        if stop in found:
            equal[stop] = found[stop].is_sound and policy.state() == found[stop].state
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
