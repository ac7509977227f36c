"""Changes, models, and the log read for estimates, in any database with the tables of the schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from rankpolicy.service.domain.deployments import Action, Change, after_change, deployments
from rankpolicy.service.domain.records import LoggedEvent, LoggedList, ShownList, Snapshot
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log.row_hashes import check_row
from rankpolicy.service.log.store import LOG, Store
from rankpolicy.service.log.transaction import EVENT, SHOWN

_CHANGE = msgspec.json.Decoder(Change)
_ENCODER = msgspec.json.Encoder()
_LISTS = """
    SELECT seq, ranking_id, version, stamp, deadline, shown, request, request_hash, row_hash FROM rankings
    WHERE stamp >= ? AND stamp < ? ORDER BY seq
"""
_EVENTS = """
    SELECT a.ranking_seq, e.seq, e.event_id, e.stamp, 'accepted', a.position, e.body, e.row_hash, e.fate, e.ranking_seq, e.position
    FROM attachments a JOIN events e ON e.seq = a.event_seq JOIN rankings r ON r.seq = a.ranking_seq
    WHERE r.stamp >= ? AND r.stamp < ?
    UNION ALL
    SELECT e.ranking_seq, e.seq, e.event_id, e.stamp, e.fate, e.position, e.body, e.row_hash, e.fate, e.ranking_seq, e.position
    FROM events e JOIN rankings r ON r.seq = e.ranking_seq WHERE r.stamp >= ? AND r.stamp < ?
    ORDER BY 1, 2
"""
_BLOCK = "WHERE {0} > ? AND {0} <= ? ORDER BY {0} LIMIT ?"
_LONG_TABLES = dict.fromkeys(LOG, "seq") | {"pending": "ranking_seq", "parked": "event_seq"}  # with their keys
_ROWS_PER_BLOCK = 100  # checked in about a millisecond, for which a request may have to wait
_LONGEST_SILENCE = """
    SELECT max(silence) FROM (SELECT stamp - lag(stamp) OVER (ORDER BY seq) AS silence FROM rankings WHERE seq <= ?) AS silences
"""
_LAST = 1 << 62
_OF_LOG = " UNION ALL ".join(f"SELECT {{0}}(seq) AS place FROM {table}" for table in LOG)
_FIRST, _NEWEST = (f"SELECT {which}(place) FROM ({_OF_LOG.format(which)}) AS places" for which in ("min", "max"))
# The first place up to a given one that something after it, or an open window, needs; the place is asked for six times.
_NEEDED = """
    SELECT min(place) FROM (
        SELECT min(ranking_seq) AS place FROM pending WHERE ranking_seq <= ?
        UNION ALL SELECT min(event_seq) FROM parked WHERE event_seq <= ?
        UNION ALL SELECT min(ranking_seq) FROM lessons WHERE seq > ? AND ranking_seq <= ?
        UNION ALL SELECT min(event_seq) FROM attachments WHERE seq > ? AND event_seq <= ?
    ) AS places
"""


class ServedStore(Store):
    """A store with what the learning loop needs beside the log of lists and events."""

    def changes(self) -> list[Change]:
        """All changes, in order."""
        rows = self._checked_rows("changes", "ORDER BY number")
        for place, row in enumerate(rows):
            if row[0] != place + 1:
                raise DamagedStoreError(f"change {place + 1} is missing. Restore the database from a backup.")
        return [_CHANGE.decode(body) for _, _, body, _ in rows]

    def last_change(self) -> int:
        """The number of the last change; 0 for none."""
        return int(self._rows("SELECT coalesce(max(number), 0) FROM changes")[0][0])

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
        with self._transaction() as connection:
            return self._inserted(connection, who, action, policy, version=version, share=share, detail=detail, now=now)

    def _inserted(
        self,
        connection: Any,
        who: str,
        action: Action,
        policy: str,
        *,
        version: int | None = None,
        share: float = 1.0,
        detail: str = "",
        now: int,
    ) -> Change:
        known = self.changes()
        stamp = max([now, *(change.stamp for change in known[-1:])])
        made = Change(
            number=len(known) + 1,
            stamp=stamp,
            who=who,
            action=action,
            policy=policy,
            version=version,
            share=share,
            detail=detail,
        )
        after = after_change(deployments(known), made)
        if action == "rollback":
            made = msgspec.structs.replace(made, version=after[policy].stable[-1])
        self._insert(connection, "changes", (made.number, stamp, _ENCODER.encode(made)))
        return made

    def save_model(self, content: bytes, *, now: int) -> str:
        """Keep the file of a model under its SHA-256, which is returned.

        Parameters
        ----------
        content
            The file.
        now
            The time of the service.
        """
        digest = sha256(content).hexdigest()
        with self._transaction() as connection:
            if not self._rows("SELECT 1 FROM models WHERE sha256 = ?", digest):
                connection.execute("INSERT INTO models VALUES (?, ?, ?)", (digest, now, content))
        return digest

    def model(self, sha256: str) -> bytes | None:
        """The file of a model; None where there is none with this hash.

        Parameters
        ----------
        sha256
            The hash, in hexadecimal digits.
        """
        rows = self._rows("SELECT content FROM models WHERE sha256 = ?", sha256)
        if rows and _sha256_of(rows[0][0]) != sha256:
            raise DamagedStoreError(f"the model {sha256} is damaged. Restore the database from a backup.")
        return bytes(rows[0][0]) if rows else None

    def checked_models(self) -> Iterator[int]:
        """Compare every model with its hash, one for each step; a damaged one is an error."""
        for (digest,) in self._rows("SELECT sha256 FROM models"):
            self.model(digest)
            yield 1

    def logged(self, *, since: int = 0, until: int | None = None, version: int | None = None) -> Iterator[LoggedList]:
        """Lists with their events, in the order of the log; a damaged row is an error.

        Parameters
        ----------
        since
            Only lists stored at this time or later, in microseconds since 1970.
        until
            Only lists stored before; None: all.
        version
            Only those of the version with this key; None: all.
        """
        span = (since, _LAST if until is None else until)
        with self._moment():
            events = iter(self._each(_EVENTS, *span, *span))
            ahead = next(events, None)
            for row in self._each(_LISTS, *span):
                check_row("rankings", row)
                seq, _, key, stamp, deadline, shown, request, _, _ = row
                mine = []
                while ahead is not None and ahead[0] == seq:
                    mine.append(_logged_event(ahead))
                    ahead = next(events, None)
                if version is None or version == key:
                    yield LoggedList(
                        seq=seq,
                        version=key,
                        stamp=stamp,
                        deadline=deadline,
                        shown=SHOWN.decode(shown),
                        request=request,
                        events=mine,
                    )

    def anchor(self, version: int) -> Snapshot | None:
        """The state after the last deleted lesson; None where nothing was deleted. A damaged one is an error.

        Parameters
        ----------
        version
            Key of the version.
        """
        rows = self._checked_rows("anchors", "WHERE version = ?", version)
        return Snapshot(version=version, seq=rows[0][1], state=rows[0][2]) if rows else None

    def deletable_through(self, before: int, *, most: int) -> int | None:
        """The last place in the log up to which everything may be deleted; None where there is nothing to delete.

        A list stays while its window is open or its lesson stays, and an event while it waits for its list or is needed by one that stays.

        Parameters
        ----------
        before
            Only lists stored before this time, in microseconds since 1970.
        most
            How many places at most.
        """
        ((first,),) = self._rows(_FIRST)
        ((last,),) = self._rows("SELECT max(seq) FROM rankings WHERE stamp < ?", before)
        if first is None or last is None:
            return None
        through = min(last, first + most - 1)
        ((newest,),) = self._rows(_NEWEST)
        through = min(through, newest - 1)  # one row stays, so that numbers go on
        while True:
            ((needed,),) = self._rows(_NEEDED, *[through] * 6)
            if needed is None:
                return int(through) if through >= first else None
            through = needed - 1

    def longest_silence(self, before: int, *, now: int) -> int:
        """The longest time between two lists of those shown before a time and the first one after them; microseconds, 0 for no list.

        Parameters
        ----------
        before
            Microseconds since 1970.
        now
            The time of the service, which counts where no list was shown after that time.
        """
        ((last,),) = self._rows("SELECT max(seq) FROM rankings WHERE stamp < ?", before)
        if last is None:
            return 0
        ((longest,),) = self._rows(_LONGEST_SILENCE, last)
        ((newest,),) = self._rows("SELECT stamp FROM rankings WHERE seq = ?", last)
        following = self._rows("SELECT stamp FROM rankings WHERE seq > ? ORDER BY seq LIMIT 1", last)
        return max(int(longest or 0), int(following[0][0] if following else now) - int(newest))

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
        with self._transaction() as connection:
            rows = 0
            for table in LOG:
                rows += self._rows(f"SELECT count(*) FROM {table} WHERE seq <= ?", seq)[0][0]
                connection.execute(f"DELETE FROM {table} WHERE seq <= ?", (seq,))
            for anchor in anchors:
                connection.execute("DELETE FROM anchors WHERE version = ?", (anchor.version,))
                self._insert(connection, "anchors", (anchor.version, anchor.seq, anchor.state))
                connection.execute("DELETE FROM snapshots WHERE version = ? AND seq < ?", (anchor.version, anchor.seq))
            detail = msgspec.json.encode({"through": seq, "rows": rows}).decode()
            return self._inserted(connection, who, "delete", "", detail=detail, now=now)

    def num_deleted(self) -> int:
        """How many rows of the log were deleted."""
        deletions = [change for change in self.changes() if change.action == "delete"]
        return sum(int(msgspec.json.decode(change.detail)["rows"]) for change in deletions)

    def checked_blocks(self) -> Iterator[int]:
        """Check every row of every table, a block for each step, beside a server that writes; the number of rows of each block.

        A damaged or missing row is an error.
        """
        last, num_deleted, counted = self.last_seq(), self.num_deleted(), 0
        for table, place in _LONG_TABLES.items():
            after, end = 0, last if table in LOG else self._rows(f"SELECT max({place}) FROM {table}")[0][0]
            while rows := self._checked_rows(table, _BLOCK.format(place), after, end, _ROWS_PER_BLOCK):
                after = rows[-1][0]
                counted += len(rows) if table in LOG else 0
                yield len(rows)
        missing = last - counted - num_deleted
        if missing and self.num_deleted() == num_deleted:  # otherwise rows were deleted meanwhile because of their age
            raise DamagedStoreError(
                f"{missing} of {last} rows of the log are missing. Restore the database from a backup."
            )
        for table in self.hashed:
            if table not in _LONG_TABLES:
                yield len(self._checked_rows(table))
        yield from self.checked_models()

    def shown_lists(self) -> Iterator[tuple[int, ShownList, bytes]]:
        """For every list the key of the version that ranked it, the list, and the request as JSON; a damaged row is an error."""
        with self._moment():
            for row in self._each(_LISTS, 0, _LAST):
                check_row("rankings", row)
                yield row[2], SHOWN.decode(row[5]), row[6]

    def audit_lines(self) -> list[tuple[int, str, str]]:
        """Time, what and detail of the lines about keys."""
        rows = self._checked_rows("audit", "ORDER BY number")
        return [(int(stamp), str(what), str(detail)) for _, stamp, what, detail, *_ in rows if "key" in what]


def _sha256_of(content: bytes) -> str:
    return sha256(content).hexdigest()


def _logged_event(row: tuple[Any, ...]) -> LoggedEvent:
    _, seq, event_id, stamp, fate, position, body, digest, own_fate, own_ranking, own_position = row
    check_row("events", (seq, event_id, stamp, own_fate, own_ranking, own_position, body, digest))
    event = EVENT.decode(body)
    return LoggedEvent(
        event_id=event_id,
        position=position,
        type=event.type,
        value=event.value,
        stamp=stamp,
        in_window=fate == "accepted",
    )
