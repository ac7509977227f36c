"""The policies of a running service: their states are the fold of the lessons in the log, as far as it was applied."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar

import msgspec
import numpy as np

from rankpolicy.service.domain.deployments import Change, deployments
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Lesson, Ordered, PolicyVersion, Snapshot
from rankpolicy.service.domain.routing import Routing, by_number
from rankpolicy.service.log.store import Store
from rankpolicy.service.policies.policy_settings import models_of, policy_of_version
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.threads import one_thread_each
from rankpolicy.types import RankPolicyError, check_name

LESSONS_AT_ONCE = 2_000
_QUICK_SECONDS = 1e-3  # handing a list to a thread takes longer than that
_STILL_QUICK_SECONDS = 2e-3  # a policy that ranks in the event loop does not leave it for one slow moment
_LONG_SECONDS = 20e-3  # in less time the threads of a network mostly wait for each other
LookedT = TypeVar("LookedT")


@dataclass(kw_only=True, eq=False)
class LivePolicy:
    """A policy version with its state."""

    version: PolicyVersion
    policy: ServedPolicy
    applied: int = 0
    # Of the state: held to learn and to copy what is known, never while a list is computed; the event loop only tries to get it.
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _computing: threading.Lock = field(default_factory=threading.Lock)  # one thread at a time uses a model
    _since_snapshot: int = 0
    _is_whole: bool = True  # whether no lesson was learned in part
    _seconds_per_item: float = math.inf  # that ranking usually takes, where the policy is not always quick
    _ranks_soon: bool = False  # whether it did so the last time
    _last_hash: tuple[int, str] = (-1, "")  # last lesson and SHA-256 of the state that was hashed last

    def __post_init__(self) -> None:
        self._empty = self.policy.state()

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The list to show; waits while lessons are learned. Not for the event loop."""
        # What the request needs of the state is copied under the lock; lessons are learned while the list is ordered.
        with self._lock:
            policy = self.policy.frozen(request)
        with nullcontext() if policy.is_quick else self._computing:
            ordered = self._ordered(policy, request, generator)
        if not request.propensity_draws or ordered.propensities is not None or not ordered.items:
            return ordered
        return _with_estimated_propensities(
            policy, request, ordered, num_draws=request.propensity_draws, generator=generator
        )

    def order_soon(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered | None:
        """The list to show, for the event loop; None where it may take more than a millisecond or two."""
        limit = _STILL_QUICK_SECONDS if self._ranks_soon else _QUICK_SECONDS
        self._ranks_soon = self.policy.is_quick or self._seconds_per_item * len(request.items) < limit
        if not self._ranks_soon or request.propensity_draws:
            return None
        # Only tried: the event loop must wait neither for a thread that learns or copies the state nor for one that ranks.
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if not self._computing.acquire(blocking=False):
                return None
            try:
                return self._ordered(self.policy, request, generator)
            finally:
                self._computing.release()
        finally:
            self._lock.release()

    def _ordered(self, policy: ServedPolicy, request: RankRequest, generator: np.random.Generator) -> Ordered:
        if policy.is_quick or not request.items:
            return policy.order(request, generator=generator)
        is_first = math.isinf(self._seconds_per_item)
        is_short = is_first or self._seconds_per_item * len(request.items) < _LONG_SECONDS
        start = time.thread_time()
        with one_thread_each() if is_short and "torch" in sys.modules else nullcontext():
            ordered = policy.order(request, generator=generator)
        seconds = (time.thread_time() - start) / len(request.items)
        self._seconds_per_item = seconds if is_first else 0.9 * self._seconds_per_item + 0.1 * seconds
        return ordered

    def learn(self, lessons: Sequence[Lesson], *, wait: bool = True) -> bool:
        """Learn lessons of this version that are in the log; those that the state has already are left out. Whether that was done.

        Where ``wait`` is False it is not done while another thread copies the state, nor where it takes as long as the state is large.
        """
        if lessons and lessons[0].seq <= self.applied:
            lessons = [lesson for lesson in lessons if lesson.seq > self.applied]
        if not lessons:
            return True
        if not wait and self.policy.takes_long_to_learn(lessons):
            return False
        if not self._lock.acquire(blocking=wait):
            return False
        try:
            self._is_whole = False
            self.policy.learn(lessons)
            self._is_whole = True
            self.applied = lessons[-1].seq
            self._since_snapshot += len(lessons)
        finally:
            self._lock.release()
        return True

    def catch_up(self, store: Store) -> None:
        """Learn what the log has and the state has not."""
        if not self._is_whole:
            self.begin(store)
        lessons = store.lessons(self.version.key, after=self.applied)
        while block := list(islice(lessons, LESSONS_AT_ONCE)):
            self.learn(block)

    def begin(self, store: Store) -> None:
        """The state at the beginning of the log: nothing is known, or what the anchor of deleted lists says."""
        anchor = store.anchor(self.version.key)
        with self._lock:
            self.policy.restore(self._empty if anchor is None else anchor.state)
            self.applied, self._is_whole = (0 if anchor is None else anchor.seq), True
            self._last_hash = -1, ""

    def restore(self, store: Store, report: Callable[[str], None]) -> None:
        """The state from the newest sound snapshot and the lessons after it; without one, from all lessons."""
        self.begin(store)
        for snapshot in store.snapshots(self.version.key):
            if snapshot.is_sound and snapshot.seq >= self.applied:
                self.policy.restore(snapshot.state)
                self.applied = snapshot.seq
                break
            if snapshot.is_sound:
                break
            report(f"a snapshot of {self.version.policy} (lesson {snapshot.seq}) is damaged; an older state is taken.")
        self.catch_up(store)

    def copied_snapshot(self) -> Callable[[], Snapshot]:
        """What makes a snapshot of the state now, while more is learned."""
        with self._lock:
            self._since_snapshot = 0
            key, seq, state = self.version.key, self.applied, self.policy.copied_state()
        return lambda: Snapshot(version=key, seq=seq, state=state())

    def snapshot(self) -> Snapshot:
        """The state now. Not for the event loop."""
        return self.copied_snapshot()()

    def state_hash(self) -> tuple[int, str]:
        """The last lesson in the state, and SHA-256 of the state. Not for the event loop."""
        return self.described()[:2]

    def look(self, read: Callable[[ServedPolicy], LookedT]) -> LookedT:
        """What a function reads of the policy, while nothing is learned."""
        with self._lock:
            return read(self.policy)

    def described(self) -> tuple[int, str, dict[str, Any]]:
        """The last lesson in the state, SHA-256 of the state, and what the policy reports of one moment. Not for the event loop."""
        with self._lock:
            applied, report = self.applied, self.policy.report()
            last_hash = self._last_hash
            state = self.policy.copied_state() if last_hash[0] != applied else None
        if state is not None:
            last_hash = self._last_hash = applied, sha256(state()).hexdigest()
        return *last_hash, report

    def wants_snapshot(self, every: int) -> bool:
        """Whether so many lessons were learned since the last snapshot."""
        return self._since_snapshot >= every


class LivePolicies:
    """All policies that are served, by name; the first is the default. Each has one or more versions, with their states."""

    def __init__(
        self, policies: Mapping[str, tuple[ServedPolicy, str]], store: Store, *, now: int, report: Callable[[str], None]
    ) -> None:
        if not policies:
            raise RankPolicyError("a service must have at least one policy.")
        self.default = next(iter(policies))
        self.names = tuple(policies)
        self._secret = store.secret()
        self._by_version: dict[int, LivePolicy] = {}
        for name, (policy, settings) in policies.items():
            version = store.version_of(name, policy.kind, settings, now=now)
            for content in models_of(policy):
                store.save_model(content, now=now)
            deployment = deployments(store.changes()).get(name)
            if deployment is None or deployment.stable[0] != version.number:
                store.add_change("configuration", "configure", name, version=version.number, now=now)
            self._by_version[version.key] = LivePolicy(version=version, policy=policy)
        for version in self.missing(store):
            self._by_version[version.key] = LivePolicy(version=version, policy=policy_of_version(version, store.model))
        for live in self._by_version.values():
            live.restore(store, report)
        self.adopt((), store.changes(), store.versions())

    @property
    def by_name(self) -> dict[str, LivePolicy]:
        """For each policy the version that serves all traffic that no canary gets."""
        return {
            name: self._by_version[self.routing.versions[name, self.routing.deployed[name].stable[-1]].key]
            for name in self.names
        }

    @property
    def by_version(self) -> dict[int, LivePolicy]:
        """Versions that are served, or that a rollback returns to, by their keys."""
        return dict(self._by_version)

    def missing(self, store: Store) -> list[PolicyVersion]:
        """Versions that are served by now and not known here yet."""
        versions = by_number(store.versions())
        served = [
            versions[name, number]
            for name, deployment in deployments(store.changes()).items()
            if name in self.names
            for number in deployment.versions
        ]
        return [version for version in served if version.key not in self._by_version]

    def adopt(self, added: Sequence[LivePolicy], changes: Sequence[Change], versions: Sequence[PolicyVersion]) -> None:
        """Serve what the log of changes says, from the next list on."""
        self._by_version = self._by_version | {live.version.key: live for live in added}
        self.routing = Routing(deployed=deployments(changes), versions=by_number(versions), secret=self._secret)
        self.change = len(changes)

    def chosen(self, named: str | None, unit: str) -> LivePolicy:
        """The version that answers a request for this policy, None for the default, by this user or for this list."""
        return self._by_version[self.routing.version(self._checked_name(named), unit).key]

    def named(self, name: str | None) -> LivePolicy:
        """The policy of this name, in the version that serves most; None: the default."""
        return self.by_name[self._checked_name(name)]

    def _checked_name(self, name: str | None) -> str:
        check_name("policy", name, self.names)
        return self.default if name is None else name

    def learn(self, lessons: Sequence[Lesson], *, wait: bool = True) -> bool:
        """Give each version its lessons; those of versions that are no longer served stay in the log. Whether all have learned."""
        by_version: dict[int, list[Lesson]] = {}
        for lesson in lessons:
            by_version.setdefault(lesson.version, []).append(lesson)
        served = [
            (self._by_version[key], version_lessons)
            for key, version_lessons in by_version.items()
            if key in self._by_version
        ]
        return all(live.learn(version_lessons, wait=wait) for live, version_lessons in served)

    def catch_up(self, store: Store) -> None:
        """Learn what the log has and the states have not."""
        for live in self._by_version.values():
            live.catch_up(store)

    def copied_snapshots(self, *, every: int) -> list[Callable[[], Snapshot]]:
        """What makes snapshots of the versions that learned so many lessons since their last one."""
        return [live.copied_snapshot() for live in self._by_version.values() if live.wants_snapshot(every)]

    def want_snapshots(self, *, every: int) -> bool:
        """Whether a version learned so many lessons since its last snapshot."""
        return any(live.wants_snapshot(every) for live in self._by_version.values())


def _with_estimated_propensities(
    policy: ServedPolicy, request: RankRequest, ordered: Ordered, *, num_draws: int, generator: np.random.Generator
) -> Ordered:
    """The list with estimated propensities: (m_p + 1) / (m_{p-1} + 1), where m_p of the drawn lists begin with its first p items.

    The list itself counts as a draw, so that no propensity is 0. The estimate for the whole list is (m + 1) / (draws + 1): with few draws
    or long lists it is too high.
    """
    matches = [0] * (len(ordered.items) + 1)
    for _ in range(num_draws):
        drawn = policy.order(request, generator=generator).items
        matches[0] += 1
        for position, (item, shown) in enumerate(zip(drawn, ordered.items, strict=True), 1):
            if item != shown:
                break
            matches[position] += 1
    steps = [(matches[position + 1] + 1) / (matches[position] + 1) for position in range(len(ordered.items))]
    return msgspec.structs.replace(ordered, propensities=steps, no_propensities=None, propensity_draws=num_draws)
