"""A database of an older format, converted when a server opens it; a copy stays as it was."""

from __future__ import annotations

from pathlib import Path

from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.log.row_hashes import row_hash
from rankpolicy.service.log.sqlite.database_file import import_apsw
from rankpolicy.service.log.sqlite.new_file import new_file
from rankpolicy.service.log.sqlite.schema import APPLICATION, CONVERSIONS, FORMAT


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
