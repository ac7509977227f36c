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

import numpy as np

from rankpolicy.service.changes import deployments
from rankpolicy.service.messages import RankRequest
from rankpolicy.service.policies.draws import with_estimated_propensities
from rankpolicy.service.policies.restoring import models_of, policy_of_version
from rankpolicy.service.policies.served_policy import Ordered, ServedPolicy
from rankpolicy.service.records import Lesson, PolicyVersion, Snapshot
from rankpolicy.service.routing import Routing, by_number
from rankpolicy.service.served_store import ServedStore
from rankpolicy.threads import one_thread_each
from rankpolicy.types import RankPolicyError, unknown_name

LESSONS_AT_ONCE = 2_000
_QUICK_SECONDS = 1e-3  # a thread beside the event loop would take longer only to begin
_STILL_QUICK_SECONDS = 2e-3  # who ranks in the event loop does not leave it for one slow moment
_LONG_SECONDS = 20e-3  # in less time the threads of a network mostly wait for each other
LookedT = TypeVar("LookedT")


@dataclass(kw_only=True, eq=False)
class LivePolicy:
    """A policy version with its state.

    Parameters
    ----------
    version
        The version.
    policy
        The policy; its state is that after the lesson ``applied``.
    applied
        The last lesson in the state.
    """

    version: PolicyVersion
    policy: ServedPolicy
    applied: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _since_snapshot: int = 0
    _is_whole: bool = True  # whether no lesson was learned in part
    _seconds_per_item: float = math.inf  # that ranking usually takes, where the policy is not always quick
    _ranks_soon: bool = False  # whether it did so the last time

    def __post_init__(self) -> None:
        self._empty = self.policy.state()

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The list to show; waits while lessons are learned.

        Parameters
        ----------
        request
            Query, items and cutoff.
        generator
            Source of randomness.
        """
        with self._lock:
            ordered = self._ordered(request, generator)
            if not request.propensity_draws or ordered.propensities is not None or not ordered.items:
                return ordered
            return with_estimated_propensities(
                self.policy, request, ordered, num_draws=request.propensity_draws, generator=generator
            )

    def order_soon(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered | None:
        """The list to show, for the event loop; None where it may take more than a millisecond or two.

        Parameters
        ----------
        request
            Query, items and cutoff.
        generator
            Source of randomness.
        """
        limit = _STILL_QUICK_SECONDS if self._ranks_soon else _QUICK_SECONDS
        self._ranks_soon = self.policy.is_quick or self._seconds_per_item * len(request.items) < limit
        if not self._ranks_soon or request.propensity_draws:
            return None
        # Another thread may rank for long; who is always quick has the lock for microseconds only.
        if not self._lock.acquire(timeout=-1 if self.policy.is_quick else _QUICK_SECONDS):
            return None
        try:
            return self._ordered(request, generator)
        finally:
            self._lock.release()

    def _ordered(self, request: RankRequest, generator: np.random.Generator) -> Ordered:
        if self.policy.is_quick or not request.items:
            return self.policy.order(request, generator=generator)
        is_first = math.isinf(self._seconds_per_item)
        is_short = is_first or self._seconds_per_item * len(request.items) < _LONG_SECONDS
        start = time.thread_time()
        with one_thread_each() if is_short and "torch" in sys.modules else nullcontext():
            ordered = self.policy.order(request, generator=generator)
        seconds = (time.thread_time() - start) / len(request.items)
        self._seconds_per_item = seconds if is_first else 0.9 * self._seconds_per_item + 0.1 * seconds
        return ordered

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Learn lessons of this version that are in the log; those that the state has already are left out.

        Parameters
        ----------
        lessons
            In the order of the log.
        """
        if lessons and lessons[0].seq <= self.applied:
            lessons = [lesson for lesson in lessons if lesson.seq > self.applied]
        if lessons:
            with self._lock:
                self._is_whole = False
                self.policy.learn(lessons)
                self._is_whole = True
                self.applied = lessons[-1].seq
                self._since_snapshot += len(lessons)

    def catch_up(self, store: ServedStore) -> None:
        """Learn what the log has and the state has not.

        Parameters
        ----------
        store
            The log.
        """
        if not self._is_whole:
            self.begin(store)
        lessons = store.lessons(self.version.key, after=self.applied)
        while block := list(islice(lessons, LESSONS_AT_ONCE)):
            self.learn(block)

    def begin(self, store: ServedStore) -> None:
        """The state at the beginning of the log: nothing is known, or what the anchor of deleted lists says.

        Parameters
        ----------
        store
            The log.
        """
        anchor = store.anchor(self.version.key)
        with self._lock:
            self.policy.restore(self._empty if anchor is None else anchor.state)
            self.applied, self._is_whole = (0 if anchor is None else anchor.seq), True

    def restore(self, store: ServedStore, report: Callable[[str], None]) -> None:
        """The state from the newest sound snapshot and the lessons after it; without one, from all lessons.

        Parameters
        ----------
        store
            The log.
        report
            Called with a sentence for every snapshot that is damaged.
        """
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

    def snapshot(self) -> Snapshot:
        """The state now. Only the thread that learns may ask for it."""
        self._since_snapshot = 0
        return Snapshot(version=self.version.key, seq=self.applied, state=self.policy.state())

    def state_hash(self) -> tuple[int, str]:
        """The last lesson in the state, and SHA-256 of the state."""
        with self._lock:
            return self.applied, sha256(self.policy.state()).hexdigest()

    def look(self, read: Callable[[ServedPolicy], LookedT]) -> LookedT:
        """What a function reads of the policy, while nothing is learned.

        Parameters
        ----------
        read
            Called with the policy; it must change nothing.
        """
        with self._lock:
            return read(self.policy)

    def described(self) -> tuple[int, str, dict[str, Any]]:
        """The last lesson in the state, SHA-256 of the state, and what the policy reports about itself, of one moment."""
        with self._lock:
            return self.applied, sha256(self.policy.state()).hexdigest(), self.policy.report()

    def wants_snapshot(self, every: int) -> bool:
        """Whether so many lessons were learned since the last snapshot.

        Parameters
        ----------
        every
            How many.
        """
        return self._since_snapshot >= every


class LivePolicies:
    """All policies that are served, by name; the first is the default. Each has one or more versions, with their states.

    Parameters
    ----------
    policies
        They by name, as the configuration has them.
    store
        The log.
    now
        The time of the service.
    report
        Called with a sentence for every snapshot that is damaged.
    """

    def __init__(
        self,
        policies: Mapping[str, tuple[ServedPolicy, str]],
        store: ServedStore,
        *,
        now: int,
        report: Callable[[str], None],
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
            known = deployments(store.changes()).get(name)
            if known is None or known.stable[0] != version.number:
                store.add_change("configuration", "configure", name, version=version.number, now=now)
            self._by_version[version.key] = LivePolicy(version=version, policy=policy)
        for version in self.missing(store):
            self._by_version[version.key] = LivePolicy(version=version, policy=policy_of_version(version, store.model))
        for live in self._by_version.values():
            live.restore(store, report)
        self.adopt((), store)

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

    def missing(self, store: ServedStore) -> list[PolicyVersion]:
        """Versions that are served by now and not known here yet.

        Parameters
        ----------
        store
            The log.
        """
        versions = by_number(store.versions())
        served = [
            versions[name, number]
            for name, deployment in deployments(store.changes()).items()
            if name in self.names
            for number in deployment.versions
        ]
        return [version for version in served if version.key not in self._by_version]

    def adopt(self, added: Sequence[LivePolicy], store: ServedStore) -> None:
        """Serve what the log of changes says, from the next list on.

        Parameters
        ----------
        added
            The versions that were missing.
        store
            The log.
        """
        self._by_version = self._by_version | {live.version.key: live for live in added}
        # Whether learning never waits for a version that takes its time to rank.
        self.learn_quickly = all(live.policy.is_quick or not live.policy.learns for live in self._by_version.values())
        changes = store.changes()
        self.routing = Routing(deployed=deployments(changes), versions=by_number(store.versions()), secret=self._secret)
        self.change = len(changes)

    def chosen(self, asked: str | None, unit: str) -> tuple[str, LivePolicy]:
        """The policy that is asked, and the version that answers.

        Parameters
        ----------
        asked
            The name in the request; None: the default.
        unit
            The user, or the id of the list.
        """
        name = self.default if asked is None else asked
        if name not in self.names:
            raise RankPolicyError(unknown_name("policy", name, self.names))
        return name, self._by_version[self.routing.version(name, unit).key]

    def named(self, name: str | None) -> LivePolicy:
        """The policy of this name, in the version that serves most; None: the default.

        Parameters
        ----------
        name
            The name.
        """
        if name is not None and name not in self.names:
            raise RankPolicyError(unknown_name("policy", name, self.names))
        return self.by_name[self.default if name is None else name]

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Give each version its lessons; those of versions that are no longer served stay in the log.

        Parameters
        ----------
        lessons
            In the order of the log.
        """
        by_version: dict[int, list[Lesson]] = {}
        for lesson in lessons:
            by_version.setdefault(lesson.version, []).append(lesson)
        for version, mine in by_version.items():
            if version in self._by_version:
                self._by_version[version].learn(mine)

    def catch_up(self, store: ServedStore) -> None:
        """Learn what the log has and the states have not.

        Parameters
        ----------
        store
            The log.
        """
        for live in self._by_version.values():
            live.catch_up(store)

    def snapshots(self, *, every: int) -> list[Snapshot]:
        """Snapshots of the versions that learned so many lessons since their last one.

        Parameters
        ----------
        every
            How many lessons.
        """
        return [live.snapshot() for live in self._by_version.values() if live.wants_snapshot(every)]

    def want_snapshots(self, *, every: int) -> bool:
        """Whether a version learned so many lessons since its last snapshot.

        Parameters
        ----------
        every
            How many lessons.
        """
        return any(live.wants_snapshot(every) for live in self._by_version.values())
