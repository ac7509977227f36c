"""Lists of the log with everything that is known about them, for estimates and exports."""

from __future__ import annotations

import msgspec

from rankpolicy.service.domain.records import ShownList


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
