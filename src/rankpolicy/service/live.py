"""The policies of a running service: their states are the fold of the lessons in the log, as far as it was applied."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice

import numpy as np

from rankpolicy.service.messages import RankRequest
from rankpolicy.service.policies.served_policy import Ordered, ServedPolicy
from rankpolicy.service.records import Lesson, PolicyVersion, Snapshot
from rankpolicy.service.store import Store
from rankpolicy.types import RankPolicyError, unknown_name

LESSONS_AT_ONCE = 2_000


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
            return self.policy.order(request, generator=generator)

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

    def catch_up(self, store: Store) -> None:
        """Learn what the log has and the state has not.

        Parameters
        ----------
        store
            The log.
        """
        if not self._is_whole:
            with self._lock:
                self.policy.restore(self._empty)
                self.applied, self._is_whole = 0, True
        lessons = store.lessons(self.version.key, after=self.applied)
        while block := list(islice(lessons, LESSONS_AT_ONCE)):
            self.learn(block)

    def restore(self, store: Store, report: Callable[[str], None]) -> None:
        """The state from the newest sound snapshot and the lessons after it; without one, from all lessons.

        Parameters
        ----------
        store
            The log.
        report
            Called with a sentence for every snapshot that is damaged.
        """
        for snapshot in store.snapshots(self.version.key):
            if snapshot.is_sound:
                self.policy.restore(snapshot.state)
                self.applied = snapshot.seq
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

    def wants_snapshot(self, every: int) -> bool:
        """Whether so many lessons were learned since the last snapshot.

        Parameters
        ----------
        every
            How many.
        """
        return self._since_snapshot >= every


class LivePolicies:
    """All policies that are served, by name; the first is the default.

    Parameters
    ----------
    policies
        They by name.
    store
        The log.
    now
        The time of the service.
    report
        Called with a sentence for every snapshot that is damaged.
    """

    def __init__(
        self, policies: Mapping[str, tuple[ServedPolicy, str]], store: Store, *, now: int, report: Callable[[str], None]
    ) -> None:
        if not policies:
            raise RankPolicyError("a service must have at least one policy.")
        self.by_name: dict[str, LivePolicy] = {}
        for name, (policy, settings) in policies.items():
            version = store.version_of(name, policy.kind, settings, now=now)
            self.by_name[name] = LivePolicy(version=version, policy=policy)
            self.by_name[name].restore(store, report)
        self._by_version = {live.version.key: live for live in self.by_name.values()}

    def named(self, name: str | None) -> LivePolicy:
        """The policy of this name; None: the default.

        Parameters
        ----------
        name
            The name.
        """
        if name is None:
            return next(iter(self.by_name.values()))
        if name not in self.by_name:
            raise RankPolicyError(unknown_name("policy", name, self.by_name))
        return self.by_name[name]

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Give each policy its lessons; those of versions that are no longer served stay in the log.

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

    def catch_up(self, store: Store) -> None:
        """Learn what the log has and the states have not.

        Parameters
        ----------
        store
            The log.
        """
        for live in self.by_name.values():
            live.catch_up(store)

    def snapshots(self, *, every: int) -> list[Snapshot]:
        """Snapshots of the policies that learned so many lessons since their last one.

        Parameters
        ----------
        every
            How many lessons.
        """
        return [live.snapshot() for live in self.by_name.values() if live.wants_snapshot(every)]
