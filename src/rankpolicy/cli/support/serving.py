"""What the verbs of the service share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankpolicy.types import MissingDependencyError, RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.service.opening import AnyStore

Db = Annotated[
    str, typer.Option("--db", help="The database of the service: a file, or postgresql://user@host/database.")
]
NotRandom = Annotated[int, typer.Option("--seed", hidden=True, help="Accepted by every verb; nothing here is random.")]
PACKAGES = ("apsw", "msgspec", "starlette", "uvicorn")


def need_serve() -> None:
    """Refuse to go on where packages of the service are missing."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(f"The service needs {package}: pip install 'rankpolicy[serve]'")


def opened(db: str, *, role: str, must_exist: bool = True) -> AnyStore:
    """The database.

    Parameters
    ----------
    db
        Its file, or the URL of a PostgreSQL database.
    role
        As ``SqliteStore`` has it.
    must_exist
        Whether a file that is not there is an error; otherwise it is made.
    """
    need_serve()
    from rankpolicy.service.opening import is_url, open_store

    if must_exist and not is_url(db) and not Path(db).is_file():
        raise RankPolicyError(f"there is no database at {db}. Name the one of your service with --db.")
    return open_store(db, role=role, check="none")
