"""A copy of a database while a server writes it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.log.sqlite.database_file import connect, import_apsw, new_file
from rankpolicy.service.log.sqlite.store import SqliteStore
from rankpolicy.types import RankPolicyError


def back_up(path: Path, target: Path) -> dict[str, int]:
    """Copy a database into a new file, check every row of the copy, and return the number of rows of the log by table.

    The copy is of one moment, and on disk when this returns. A running server is not disturbed.
    """
    apsw = import_apsw()
    if target.exists():
        raise RankPolicyError(f"{target} exists already. Choose another name for the copy.")
    if not target.parent.is_dir():
        raise RankPolicyError(f"there is no folder {target.parent} for the copy. Make it first.")
    source = connect(path, read_only=True)
    try:
        with new_file(target) as unfinished:  # it holds hashes of keys
            source.execute("VACUUM INTO ?", (str(unfinished),))
            counts = _checked(unfinished)
    except (apsw.Error, OSError) as error:
        raise UnavailableError(f"the copy {target} could not be written: {error}.") from None
    finally:
        source.close()
    return counts


def _checked(copy: Path) -> dict[str, int]:
    with closing(SqliteStore(copy, role="reader", check="none")) as store:
        return store.check()
