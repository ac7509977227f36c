"""The face of a store. The log in it is the truth; everything else can be computed again from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from rankpolicy.service.keys import StoredKey
from rankpolicy.service.records import (
    Committed,
    Lesson,
    NewEvents,
    NewRanking,
    PolicyVersion,
    Snapshot,
    StoredRanking,
)


class Store(Protocol):
    """Keeps shown lists, events and lessons in the order in which they were committed.

    One thread writes. ``commit`` is one transaction: lists, events, the check for duplicates and what follows for open windows are on disk
    together when it returns, or not at all when it raises ``UnavailableError``.
    """

    def commit(self, work: Sequence[NewRanking | NewEvents], *, now: int) -> Committed:
        """Store the work and end the windows that are due.

        Parameters
        ----------
        work
            Lists and events, in order.
        now
            The time of the service.
        """
        ...

    def reopen(self) -> None:
        """Begin again after a failure: what was committed is read from the disk, not remembered."""
        ...

    def close(self) -> None:
        """Release the database."""
        ...

    def last_stamp(self) -> int:
        """The last time in the log; 0 for an empty one."""
        ...

    def secret(self) -> bytes:
        """32 random bytes made with the database; random lists are drawn from them and the ranking id."""
        ...

    def version_of(self, policy: str, kind: str, settings: str, *, now: int) -> PolicyVersion:
        """The version of a policy with these settings; a new one where they were never served under this name.

        Parameters
        ----------
        policy, kind, settings
            Name, kind and settings as JSON with sorted keys.
        now
            The time of the service.
        """
        ...

    def versions(self) -> list[PolicyVersion]:
        """All versions of all policies."""
        ...

    def ranking(self, ranking_id: str) -> StoredRanking | None:
        """A shown list; None where there is none with this id.

        Parameters
        ----------
        ranking_id
            Its id.
        """
        ...

    def clicks_of(self, ranking: StoredRanking) -> tuple[bytes, bool]:
        """Clicks on a list (one byte per item) and whether they were learned already.

        Parameters
        ----------
        ranking
            The list.
        """
        ...

    def lessons(self, version: int, *, after: int = 0, until: int | None = None) -> Iterator[Lesson]:
        """Lessons of a version in the order of the log.

        Parameters
        ----------
        version
            Key of the version.
        after
            Only lessons with a larger seq.
        until
            Only lessons up to this seq; None: all.
        """
        ...

    def save_snapshot(self, snapshot: Snapshot, *, now: int) -> None:
        """Keep a snapshot; older ones but the last are dropped.

        Parameters
        ----------
        snapshot
            The snapshot.
        now
            The time of the service.
        """
        ...

    def snapshots(self, version: int) -> list[Snapshot]:
        """Snapshots of a version, the newest first; damaged ones are marked.

        Parameters
        ----------
        version
            Key of the version.
        """
        ...

    def audit(self, what: str, detail: str, *, now: int) -> None:
        """Write a line into the audit log.

        Parameters
        ----------
        what
            What was done.
        detail
            To what, in words or JSON.
        now
            The time of the service.
        """
        ...

    def valid_keys(self) -> list[StoredKey]:
        """The keys that are in force."""
        ...
