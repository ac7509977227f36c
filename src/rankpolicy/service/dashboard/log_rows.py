"""The log as rows in their order, as statistics read it: shown lists and what users did with them."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import msgspec

from rankpolicy.service.log.store import Store


class LoggedItem(msgspec.Struct, frozen=True, gc=False):
    """What is read of an item of a request."""

    id: str
    group: str | None = None


class LoggedRequest(msgspec.Struct, frozen=True, gc=False):
    """What is read of a request."""

    items: list[LoggedItem] = []


class LoggedList(msgspec.Struct, frozen=True, gc=False):
    """What is read of a shown list."""

    policy: str
    policy_version: int
    query: str
    items: list[str]
    propensities: list[float] | None = None
    no_propensities: str | None = None


class ListRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A shown list of the log."""

    seq: int
    version: int  # key of the policy version
    stamp: int
    ranking_id: str
    shown: LoggedList
    request: bytes


class EventRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event of the log, at the moment at which it and its list were both known."""

    seq: int
    stamp: int
    fate: str  # accepted, late or orphan; attached for an orphan whose list came
    type: str
    ranking_seq: int | None  # None for orphans
    position: int | None  # from 0


class _Body(msgspec.Struct, frozen=True):
    type: str = "click"


_LIST = msgspec.json.Decoder(LoggedList)
_BODY = msgspec.json.Decoder(_Body)
_LISTS = "SELECT seq, version, stamp, ranking_id, shown, request FROM rankings"
_EVENTS = "SELECT seq, stamp, fate, body, ranking_seq, position FROM events WHERE seq > ? AND seq <= ?"
_ATTACHED = (
    "SELECT a.seq, e.stamp, 'attached', e.body, a.ranking_seq, a.position FROM attachments a "
    "JOIN events e ON e.seq = a.event_seq WHERE a.seq > ? AND a.seq <= ?"
)


def lists_between(store: Store, *, after: int, until: int) -> list[ListRow]:
    """Lists with a place in the log above ``after``, up to ``until``."""
    return list(map(_list_row, store.rows(f"{_LISTS} WHERE seq > ? AND seq <= ? ORDER BY seq", after, until)))


def list_at(store: Store, seq: int) -> ListRow | None:
    """The list at a place; None where there is none."""
    return next(map(_list_row, store.rows(f"{_LISTS} WHERE seq = ?", seq)), None)


def events_between(store: Store, *, after: int, until: int) -> list[EventRow]:
    """Events with a place above ``after``, up to ``until``, and older ones that found their list there."""
    rows = [row for statement in (_EVENTS, _ATTACHED) for row in store.rows(statement, after, until)]
    return [
        EventRow(seq=seq, stamp=stamp, fate=fate, type=_BODY.decode(body).type, ranking_seq=ranking, position=position)
        for seq, stamp, fate, body, ranking, position in sorted(rows, key=itemgetter(0))
    ]


def _list_row(row: tuple[Any, ...]) -> ListRow:
    seq, version, stamp, ranking_id, shown, request = row
    return ListRow(
        seq=seq, version=version, stamp=stamp, ranking_id=ranking_id, shown=_LIST.decode(shown), request=request
    )
