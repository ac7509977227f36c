"""The log as rows in their order, for who follows it: shown lists and what users did with them."""

from __future__ import annotations

from typing import Any

import msgspec

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.records import PolicyVersion
from rankpolicy.service.log.locations import open_store
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
_COLUMNS = "seq, version, stamp, ranking_id, shown, request"


def open_rows(config: ServiceConfig) -> LogRows:
    """The log of a service, through a connection of its own that writes nothing."""
    return LogRows(open_store(config.place, role="reader", check="none"))


class LogRows:
    """Reads the log of a database while a server writes it. One thread uses it at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def close(self) -> None:
        """Release the database."""
        self._store.close()

    def last_seq(self) -> int:
        """The last place in the log that is taken; 0 for an empty log."""
        return self._store.last_seq()

    def lists(self, *, after: int, until: int) -> list[ListRow]:
        """Lists with a place in the log above ``after``, up to ``until``."""
        rows = self._store.rows(
            f"SELECT {_COLUMNS} FROM rankings WHERE seq > ? AND seq <= ? ORDER BY seq", after, until
        )
        return [_list_row(row) for row in rows]

    def events(self, *, after: int, until: int) -> list[EventRow]:
        """Events with a place above ``after``, up to ``until``, and older ones that found their list there."""
        new_events = self._store.rows(
            "SELECT seq, stamp, fate, body, ranking_seq, position FROM events WHERE seq > ? AND seq <= ?", after, until
        )
        attached = self._store.rows(
            "SELECT a.seq, e.stamp, 'attached', e.body, a.ranking_seq, a.position FROM attachments a "
            "JOIN events e ON e.seq = a.event_seq WHERE a.seq > ? AND a.seq <= ?",
            after,
            until,
        )
        rows_of_events = [
            EventRow(
                seq=seq, stamp=stamp, fate=fate, type=_BODY.decode(body).type, ranking_seq=ranking, position=position
            )
            for rows in (new_events, attached)
            for seq, stamp, fate, body, ranking, position in rows
        ]
        return sorted(rows_of_events, key=lambda row: row.seq)

    def list_at(self, seq: int) -> ListRow | None:
        """The list at a place; None where there is none."""
        rows = self._store.rows(f"SELECT {_COLUMNS} FROM rankings WHERE seq = ?", seq)
        return _list_row(rows[0]) if rows else None

    def versions(self) -> dict[int, PolicyVersion]:
        """All versions of all policies by their keys."""
        return {version.key: version for version in self._store.versions()}


def _list_row(row: tuple[Any, ...]) -> ListRow:
    seq, version, stamp, ranking_id, shown, request = row
    return ListRow(
        seq=seq, version=version, stamp=stamp, ranking_id=ranking_id, shown=_LIST.decode(shown), request=request
    )
