"""What the learning loop needs of a store beside the log of lists and events: changes, models, and the log read for estimates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from rankpolicy.service.changes import Action, Change
from rankpolicy.service.records import ShownList, Snapshot
from rankpolicy.service.store import Store


class LoggedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event on a list.

    Parameters
    ----------
    event_id
        Its id.
    position
        The place of the item in the list, from 0.
    type
        click, purchase, view ...
    value
        A number, such as a price.
    stamp
        When it was stored, in microseconds since 1970.
    in_window
        Whether it came before the window of the list ended.
    """

    event_id: str
    position: int
    type: str
    value: float | None
    stamp: int
    in_window: bool


class LoggedList(msgspec.Struct, frozen=True, kw_only=True):
    """A list with everything that is known about it.

    Parameters
    ----------
    seq
        Its place in the log.
    version
        Key of the version that ranked it.
    stamp
        When it was stored, in microseconds since 1970.
    deadline
        When its window ends.
    shown
        The list.
    request
        The request, as JSON.
    events
        What users did with it.
    """

    seq: int
    version: int
    stamp: int
    deadline: int
    shown: ShownList
    request: bytes
    events: list[LoggedEvent]

    def clicks(self, event: str = "click") -> list[int]:
        """1 for each item with such an event within the window, 0 for the others.

        Parameters
        ----------
        event
            The type of event.
        """
        marks = [0] * len(self.shown.items)
        for one in self.events:
            if one.in_window and one.type == event:
                marks[one.position] = 1
        return marks


class ServedStore(Store, Protocol):
    """A store with changes and models."""

    def changes(self) -> list[Change]:
        """All changes, in order."""
        ...

    def last_change(self) -> int:
        """The number of the last change; 0 for none."""
        ...

    def add_change(
        self,
        who: str,
        action: Action,
        policy: str,
        *,
        version: int | None = None,
        share: float = 1.0,
        detail: str = "",
        now: int,
    ) -> Change:
        """Make a change; one that cannot be made is an error, and nothing is stored.

        Parameters
        ----------
        who, action, policy, version, share, detail
            As ``Change`` has them; a rollback finds the version itself.
        now
            The time of the service.
        """
        ...

    def save_model(self, content: bytes, *, now: int) -> str:
        """Keep the file of a model under its SHA-256, which is returned.

        Parameters
        ----------
        content
            The file.
        now
            The time of the service.
        """
        ...

    def model(self, sha256: str) -> bytes | None:
        """The file of a model; None where there is none with this hash.

        Parameters
        ----------
        sha256
            The hash, in hexadecimal digits.
        """
        ...

    def logged(self, *, since: int = 0, until: int | None = None, version: int | None = None) -> Iterator[LoggedList]:
        """Lists with their events, in the order of the log.

        Parameters
        ----------
        since
            Only lists stored at this time or later, in microseconds since 1970.
        until
            Only lists stored before; None: all.
        version
            Only those of the version with this key; None: all.
        """
        ...

    def shown_lists(self) -> Iterator[tuple[int, ShownList, bytes]]:
        """For every list the key of the version that ranked it, the list, and the request as JSON."""
        ...

    def anchor(self, version: int) -> Snapshot | None:
        """The state after the last deleted lesson; None where nothing was deleted. A damaged one is an error.

        Parameters
        ----------
        version
            Key of the version.
        """
        ...

    def deletable_through(self, before: int, *, most: int) -> int | None:
        """The last place in the log up to which everything may be deleted; None where there is nothing to delete.

        Parameters
        ----------
        before
            Only lists stored before this time, in microseconds since 1970.
        most
            How many places at most.
        """
        ...

    def delete_through(self, seq: int, anchors: Sequence[Snapshot], *, who: str, now: int) -> Change:
        """Delete the log up to a place, keep anchors, and note it in the log of changes, in one transaction.

        Parameters
        ----------
        seq
            The last place to delete.
        anchors
            States after the last deleted lesson.
        who
            Who does it.
        now
            The time of the service.
        """
        ...

    def audit_lines(self) -> list[tuple[int, str, str]]:
        """Time, what and detail of the lines about keys."""
        ...
