"""What is learned of a list, as bytes that the log keeps: one per item for clicks, eight per item for rewards.

Marks of rewards end with a byte that says whether the list was activated. Only lists with a ``RewardRule`` have them.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from rankpolicy.service.domain.messages import ACTIVATION, CLICK, REWARD

if TYPE_CHECKING:
    from rankpolicy.service.domain.messages import NewEvent
    from rankpolicy.service.domain.records import LoggedEvent, ShownList

LEARNED = frozenset((CLICK, REWARD, ACTIVATION))  # types of events that change marks
_DOUBLE = struct.Struct("<d")


def fresh_marks(shown: ShownList) -> bytearray:
    """The marks of a list on which nothing has happened."""
    if shown.rewards is None:
        return bytearray(len(shown.items))
    return bytearray(_DOUBLE.pack(math.nan) * len(shown.items) + bytes([not shown.rewards.deferred]))


def mark(marks: bytearray, shown: ShownList, event: NewEvent | LoggedEvent, position: int) -> bool:
    """Note an event on the item at a position; whether that changed the marks."""
    before = bytes(marks)
    if shown.rewards is None:
        marks[position] |= event.type == CLICK
    elif event.type == ACTIVATION:
        marks[-1] = 1
    elif event.type == REWARD and event.value is not None:
        (earlier,) = _DOUBLE.unpack_from(marks, 8 * position)
        if math.isnan(earlier):
            _DOUBLE.pack_into(marks, 8 * position, event.value)
        elif shown.rewards.several == "sum":
            _DOUBLE.pack_into(marks, 8 * position, earlier + event.value)
    return bytes(marks) != before


def rewards_in(marks: bytes, *, default: float) -> list[float] | None:
    """The reward of each item, the default where none came; None for a list that was never activated.

    >>> rewards_in(struct.pack("<2d?", 0.5, math.nan, True), default=0.0)
    [0.5, 0.0]
    """
    *rewards, is_active = struct.unpack(f"<{len(marks) // 8}d?", marks)
    return [default if math.isnan(reward) else reward for reward in rewards] if is_active else None
