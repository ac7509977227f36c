"""The store of the service in a PostgreSQL database. Several servers may share one."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rankpolicy.optional import require
from rankpolicy.service.domain.records import Committed, Lesson, NewEvents, NewRanking, PolicyVersion
from rankpolicy.service.errors import DamagedStoreError, UnavailableError
from rankpolicy.service.log.sqlite import schema as sqlite_schema
from rankpolicy.service.log.store import LESSONS, Store, check_format
from rankpolicy.service.log.tables import OpenLists, Tables
from rankpolicy.service.log.transaction import Row, Transaction
from rankpolicy.types import RankPolicyError

FORMAT = 1
LONGEST_LAG = 1_000_000  # microseconds after which a server without requests asks what the others have learned
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds after a failure to connect, doubled with each
# A host that vanishes says no goodbye: without these, reading from it ends after a quarter of an hour or never. The URL may say otherwise.
_TIMEOUTS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
_FIRST_LOCK = 0x52414E4B  # of the advisory lock while the tables are made

# PostgreSQL has checksums of pages; rows of these tables, which are no part of the log, carry no hash.
_WITHOUT_HASH = re.compile(r"(CREATE TABLE (?:meta|audit|keys|pending|parked) [^;]*?),\s*row_hash BLOB NOT NULL")
_TYPES = {"INTEGER": "BIGINT", "BLOB": "BYTEA", "TEXT": 'TEXT COLLATE "C"', " STRICT, WITHOUT ROWID": "", " STRICT": ""}
_LOG_END = """
CREATE TABLE log_end (is_it BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (is_it), seq BIGINT NOT NULL, stamp BIGINT NOT NULL);
INSERT INTO log_end (seq, stamp) VALUES (0, 0);
"""


def _translated(schema: str) -> str:
    schema = _WITHOUT_HASH.sub(r"\1", schema)
    for sqlite_word, word in _TYPES.items():
        schema = schema.replace(sqlite_word, word)
    return re.sub(r"(CREATE TABLE audit \(\s*number BIGINT)", r"\1 GENERATED ALWAYS AS IDENTITY", schema)


SCHEMA = _LOG_END + _translated(sqlite_schema.SCHEMA)


class PostgresTables(Tables):
    """The tables of one database."""

    is_in = "= ANY(?)"

    def _execute(self, statement: str, *values: Any) -> Any:
        return self._connection.execute(with_marks(statement), values)

    def _list(self, values: Collection[Any]) -> list[Any]:
        return list(values)

    def _insert(self, table: str, rows: Sequence[Row]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)

    def _update_clicks(self, rows: Sequence[Row]) -> None:
        with self._connection.cursor() as cursor:
            changed = [(clicks, seq) for seq, _, clicks in rows]
            cursor.executemany("UPDATE pending SET clicks = %s WHERE ranking_seq = %s", changed)


def with_marks(statement: str) -> str:
    """A statement with psycopg's marks in place of ``?``."""
    return statement.replace("?", "%s")


class PostgresStore(Store):
    """Lists, events, lessons, snapshots and keys in a PostgreSQL database.

    Every transaction locks the end of the log first, so transactions of several servers come one after the other, and the log has the
    order in which they did. A commit also brings the lessons that other servers have written since the last one: each server folds the
    same log in the same order, and all have the same states.

    Roles: ``"server"`` and ``"writer"`` write lists and events, ``"keys"`` keys, ``"reader"`` nothing. PostgreSQL
    checks its pages itself (``initdb --data-checksums``).
    """

    def __init__(self, url: str, *, role: str = "server") -> None:
        self._psycopg = require("psycopg", "A PostgreSQL store")
        self._url, self._role = url, role
        self.name = _without_password(self._psycopg, url)
        self._connection: Any = None
        self._is_closed = False
        self._pause = _SHORTEST_PAUSE  # after the next failure to connect
        self._no_attempt_before = 0.0  # by the monotonic clock
        self._seq = 0  # the last row of the log that this store has seen
        self._was_read = False  # then tables that are missing were lost
        self.reopen()

    def reopen(self) -> None:
        """Begin again after a failure: what was committed is read from the database, not remembered."""
        self._disconnect()
        try:
            with self._failures_named():
                self._connection = self._new_connection()
                if self._role == "reader":
                    self._connection.execute("SET default_transaction_read_only = on")
                elif self._role != "writer" and not self._was_read:
                    self._make_tables()
                self._check_format()
                # Read before the policies catch up: a lesson that comes between is brought again, and they know it already.
                (end_of_log,) = self._connection.execute("SELECT seq FROM log_end").fetchone() or (0,)
                if end_of_log < self._seq:
                    raise UnavailableError(
                        f"the log in {self.name} ends with row {end_of_log}, but row {self._seq} was acknowledged: it is another database, "
                        "or a copy that lagged behind. Nothing is stored until the right one is there."
                    )
                self._seq, self._was_read = end_of_log, True
        except BaseException:
            self._disconnect()
            raise

    def close(self) -> None:
        """Release the database."""
        self._is_closed = True
        self._disconnect()

    def commit(self, work: Sequence[NewRanking | NewEvents], *, now: int, urgent: bool = False) -> Committed:
        """Store the work, end the windows that are due, and bring the lessons of other servers."""
        with self._locked_log() as (connection, seq, stamp):
            now = max(now, stamp)
            rows = self.rows(f"{LESSONS} ORDER BY l.seq", self._seq) if seq > self._seq else []
            lessons_of_others: list[Lesson] = [self._lesson_of(row) for row in rows]
            transaction = Transaction(PostgresTables(connection, OpenLists()), work, seq=seq, now=now, urgent=urgent)
            committed = transaction.run()
            if transaction.seq > seq:
                connection.execute("UPDATE log_end SET seq = %s, stamp = %s", (transaction.seq, now))
        self._seq = transaction.seq
        look_again = now + LONGEST_LAG
        deadline = committed.next_deadline
        return Committed(
            outcomes=committed.outcomes,
            lessons=[*lessons_of_others, *committed.lessons],
            next_deadline=look_again if deadline is None else min(deadline, look_again),
        )

    def version_of(self, policy: str, kind: str, settings: str, *, now: int) -> PolicyVersion:
        """The version of a policy with these settings; a new one where they were never served under this name."""
        with self._locked_log():  # two servers that start at once make one version
            return super().version_of(policy, kind, settings, now=now)

    @contextmanager
    def _moment(self) -> Iterator[None]:
        with self._failures_named(), self._connected().transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield

    def _each(self, statement: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        with self._connection.cursor(name=f"each_{secrets.token_hex(4)}") as cursor:
            cursor.itersize = 2_000
            yield from cursor.execute(with_marks(statement), values or None)

    @contextmanager
    def _locked_log(self) -> Iterator[tuple[Any, int, int]]:
        with self._failures_named(), self._connected().transaction():
            rows = self._connection.execute("SELECT seq, stamp FROM log_end FOR UPDATE").fetchall()
            if len(rows) != 1:
                raise DamagedStoreError(f"the end of the log is missing from {self.name}. Restore a backup.")
            yield self._connection, *rows[0]

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with self._locked_log():  # what two servers change at once is changed one after the other
            yield _WithMarks(self._connection)

    def _add_audit_line(self, connection: Any, what: str, detail: str, *, now: int) -> None:
        connection.execute("INSERT INTO audit (stamp, what, detail) VALUES (?, ?, ?)", (now, what, detail))

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            with self._failures_named():
                return list(_WithMarks(self._connected()).execute(statement, values).fetchall())
        except UnavailableError:
            # A restart of the database shows only when a connection from before it is used; reading may be done twice.
            if self._role != "reader" or self._connection is None or not self._connection.closed:
                raise
            return self.rows(statement, *values)

    def _connected(self) -> Any:
        if self._is_closed:
            raise UnavailableError(f"{self.name} is closed.")
        if self._role == "reader" and (self._connection is None or self._connection.closed):
            self.reopen()
        if self._connection is None:  # the journal's thread reopens the store before it writes again
            raise UnavailableError(f"{self.name} is not connected: nothing was stored. Send it again.")
        return self._connection

    def _new_connection(self) -> Any:
        """Connect; shortly after a failed attempt nothing is tried, so that a database that starts again is not flooded."""
        if time.monotonic() < self._no_attempt_before:
            raise UnavailableError(f"{self.name} does not answer: nothing was stored. Send it again later.")
        try:
            options = _TIMEOUTS | self._psycopg.conninfo.conninfo_to_dict(self._url)
            connection = self._psycopg.connect(**options, autocommit=True)
            connection.execute("SET synchronous_commit = on; SET statement_timeout = '60s'")
        except self._psycopg.OperationalError:
            self._no_attempt_before = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            raise
        self._pause, self._no_attempt_before = _SHORTEST_PAUSE, 0.0
        return connection

    def _make_tables(self) -> None:
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_FIRST_LOCK,))
            if self._connection.execute("SELECT to_regclass('log_end')").fetchone()[0] is None:
                self._connection.execute(SCHEMA)
                values = {"secret": secrets.token_bytes(32), "format": str(FORMAT).encode()}
                for name, value in values.items():
                    self._connection.execute("INSERT INTO meta VALUES (%s, %s)", (name, value))

    def _check_format(self) -> None:
        if self._connection.execute("SELECT to_regclass('log_end')").fetchone()[0] is None:
            if self._was_read or self._role == "writer":
                raise UnavailableError(
                    f"{self.name} has lost the tables of the service: nothing was stored. Restore a backup."
                )
            raise RankPolicyError(f"{self.name} has no tables of a service yet. Start one: rankpolicy serve.")
        (number,) = self._connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
        check_format(self.name, int(number), FORMAT)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(self._psycopg.Error):
                connection.close()

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        """Failures of PostgreSQL as ours."""
        errors = self._psycopg.errors
        try:
            yield
        except (errors.DataCorrupted, errors.IndexCorrupted) as error:
            raise DamagedStoreError(f"{self.name} is damaged ({_first_line(error)}). Restore a backup.") from None
        except (self._psycopg.OperationalError, self._psycopg.InterfaceError) as error:
            raise UnavailableError(
                f"{self.name} cannot be used: nothing was stored ({_first_line(error)}). Send it again."
            ) from None


class _WithMarks:
    """A connection that takes statements with ``?`` where a value stands."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(with_marks(statement), values or None)


def _without_password(psycopg: Any, url: str) -> str:
    try:
        options = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise RankPolicyError("store must be postgresql://user@host/database; got something else.") from None
    return f"the database {options.get('dbname', 'postgres')} on {options.get('host', 'this machine')}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
