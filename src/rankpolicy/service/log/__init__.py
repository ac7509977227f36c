"""The log: everything that is stored, in a file of SQLite or in PostgreSQL, and what is read from it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankpolicy.service.log.store import Store


def open_store(location: str | os.PathLike[str], *, role: str = "server") -> Store:
    """The store. Pages of a file are not checked: a server does that while it starts (``Store.check_beside``)."""
    if is_url(location):
        from rankpolicy.service.log.postgres import PostgresStore

        return PostgresStore(str(location), role=role)
    from rankpolicy.service.log.sqlite import SqliteStore

    return SqliteStore(location, role=role, check="none")


def is_url(location: str | os.PathLike[str]) -> bool:
    """Whether a place is a PostgreSQL database.

    >>> is_url("postgresql://localhost/search"), is_url("rankpolicy.db")
    (True, False)
    """
    return str(location).startswith(("postgresql://", "postgres://"))
