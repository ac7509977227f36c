"""A database file: made whole where there is none, converted and checked where there is one, and locked against a second server."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from rankpolicy.optional import require
from rankpolicy.service.errors import DamagedStoreError, UnavailableError
from rankpolicy.service.log.sqlite.schema import APPLICATION, CONVERSIONS, FORMAT, SCHEMA
from rankpolicy.service.log.store import check_format
from rankpolicy.service.log.transaction import row_hash
from rankpolicy.types import MissingDependencyError, RankPolicyError

_BUSY_MILLISECONDS = 5_000  # how long a commit waits for another process, such as one that makes a key
_LOCK_SECONDS = 2.0  # how long a server that starts waits for one that was killed
_TABLES = "SELECT name, tbl_name, sql FROM sqlite_schema"
# Before it, two connections that reset the write-ahead log at the same moment can damage the database.
OLDEST_SQLITE = (3, 51, 3)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """An empty file to be filled, which gets its name and is on disk at the end; one that came meanwhile is a FileExistsError."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    _drop(unfinished)
    try:
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield unfinished
        _sync(unfinished)
        os.link(unfinished, path)  # unlike a rename, this does not replace a file that came meanwhile
        _sync(path.parent)
    finally:
        _drop(unfinished)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _drop(unfinished: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):  # a database has these
        Path(f"{unfinished}{ending}").unlink(missing_ok=True)


@lru_cache(maxsize=1)
def import_apsw() -> Any:
    """The SQLite library; the one in Python's standard library may be too old."""
    apsw = require("apsw", "The service")
    installed, oldest = apsw.sqlite_lib_version(), ".".join(map(str, OLDEST_SQLITE))
    if tuple(map(int, installed.split("."))) < OLDEST_SQLITE:
        raise MissingDependencyError(
            f"The service needs SQLite {oldest} or later; apsw has {installed}: pip install -U apsw"
        )
    return apsw


def connect(path: Path, *, read_only: bool = False) -> Any:
    """A connection with the settings that durability depends on."""
    apsw = import_apsw()
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    try:
        if os.stat(path).st_size == 0:
            raise DamagedStoreError(f"{path} is empty: what it held is gone. Restore it from a backup, or delete it.")
        connection = apsw.Connection(str(path), flags=flags)
        connection.set_busy_timeout(_BUSY_MILLISECONDS)
        connection.pragma("cell_size_check", True)
        connection.pragma("trusted_schema", False)
        _check_format(connection, path)
        _check_schema(connection, path)
        if not read_only:
            if connection.pragma("journal_mode", "wal") != "wal":
                raise RankPolicyError(f"{path} must be on a file system with shared memory, not on a network drive.")
            connection.pragma("synchronous", "FULL")
    except (apsw.NotADBError, apsw.CorruptError, UnicodeDecodeError) as error:
        raise DamagedStoreError(f"{path} is no database, or is damaged ({error}). Restore it from a backup.") from None
    except (apsw.Error, OSError) as error:
        raise UnavailableError(f"cannot open the database {path}: {error}.") from None
    return connection


def create_database(path: Path) -> None:
    """Make a database with all tables. The file is there whole or not at all, so an empty one is never a new one."""
    if path.exists():
        return
    for remains in (f"{path}-wal", f"{path}.mark"):
        if os.path.exists(remains):
            raise DamagedStoreError(
                f"{path} is gone, but {remains} is there: the database was deleted or renamed. Put it back or restore a backup; "
                f"to begin a new one, delete {remains} too."
            )
    connection = import_apsw().Connection(":memory:")
    connection.execute(SCHEMA)
    secret = ("secret", secrets.token_bytes(32))
    connection.execute("INSERT INTO meta VALUES (?, ?, ?)", (*secret, row_hash(*secret)))
    connection.pragma("application_id", APPLICATION)
    connection.pragma("user_version", FORMAT)
    try:
        with suppress(FileExistsError), new_file(path) as unfinished:
            unfinished.write_bytes(connection.serialize("main"))
    except OSError as error:
        raise UnavailableError(f"cannot make the database {path}: {error.strerror or error}.") from None


def convert(path: Path) -> None:
    """Bring a database to this version's format, in one transaction; before that it is copied to ``<path>.format-<number>``."""
    apsw = import_apsw()
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        number = connection.pragma("user_version")
        if connection.pragma("application_id") != APPLICATION or number not in CONVERSIONS:
            return
        copy = Path(f"{path}.format-{number}")
        if not copy.exists():
            with new_file(copy) as unfinished:
                connection.execute("VACUUM INTO ?", (str(unfinished),))
        connection.create_scalar_function("row_hash", row_hash)
        connection.execute("BEGIN IMMEDIATE")
        for statements in [CONVERSIONS[older] for older in range(number, FORMAT)]:
            connection.execute(statements)
        connection.pragma("user_version", FORMAT)
        connection.execute("COMMIT")
    except OSError as error:
        raise UnavailableError(
            f"{path} has an older format, and no copy could be made before it is converted: {error.strerror or error}. "
            "Nothing was changed. Make room next to it."
        ) from None
    finally:
        connection.close(force=True)  # what was not committed is undone


def check_pages(connection: Any, path: Path, *, thorough: bool) -> None:
    """Refuse a database whose pages do not fit together."""
    apsw = import_apsw()
    pragma = "integrity_check" if thorough else "quick_check"
    try:
        answer = connection.execute(f"PRAGMA {pragma}(1)").fetchall()
    except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
        answer = [(str(error),)]
    if answer != [("ok",)]:
        raise DamagedStoreError(f"{path} is damaged ({answer[0][0]}). Restore it from a backup.")


def _check_format(connection: Any, path: Path) -> None:
    version = connection.pragma("user_version")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables == 0:
        raise DamagedStoreError(
            f"{path} holds no tables: what it held is gone. Restore it from a backup, or delete it."
        )
    if connection.pragma("application_id") != APPLICATION:
        raise RankPolicyError(f"{path} is a database of another program. Choose another file.")
    check_format(str(path), version, FORMAT)


def _check_schema(connection: Any, path: Path) -> None:
    """Refuse a database whose tables are described in other words than those they were made with."""
    expected = _described(SCHEMA)
    stored = {name: (table, text) for name, table, text in connection.execute(_TABLES)}
    # Tables that a newer version has added are left alone; those of this one under another name are not.
    wrong = [
        name
        for name, described in stored.items()
        if (described != expected[name] if name in expected else described in expected.values())
    ]
    wrong += [name for name in expected if name not in stored]
    if wrong:
        raise DamagedStoreError(f"{path} is damaged (the description of {wrong[0]!r:.80}). Restore it from a backup.")


@lru_cache(maxsize=1)
def _described(schema: str) -> dict[str, tuple[str, str | None]]:
    connection = import_apsw().Connection(":memory:")
    connection.execute(schema)
    return {name: (table, text) for name, table, text in connection.execute(_TABLES)}


class FileLock:
    """Held by the one server that writes to a database: a second one would learn without knowing of the first."""

    def __init__(self, path: Path) -> None:
        try:
            self.descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise RankPolicyError(f"cannot lock the database {path}: {error.strerror or error}.") from None
        if not self._is_taken():
            os.close(self.descriptor)
            raise RankPolicyError(f"{path} is in use by another server. Stop it, or choose another file.")

    def release(self) -> None:
        """Let another server have the database."""
        os.close(self.descriptor)

    def _is_taken(self) -> bool:
        """Whether the lock could be had; a server that was killed has it until its last transaction has ended."""
        until = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > until:
                    return False
                time.sleep(0.01)
            else:
                return True
