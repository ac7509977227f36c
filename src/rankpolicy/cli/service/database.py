"""What the verbs of the service share."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankpolicy.optional import how_to_install
from rankpolicy.types import MissingDependencyError, RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.service.log.store import Store

Db = Annotated[
    str, typer.Option("--db", help="The database of the service: a file, or postgresql://user@host/database.")
]
Since = Annotated[
    str | None,
    typer.Option(
        metavar="DATE", help="Only lists shown at this time or later, such as 2026-11-01.", show_default="all"
    ),
]
PACKAGES = ("apsw", "msgspec", "starlette", "uvicorn")


def need_serve() -> None:
    """Refuse a verb of the service where a package of it is missing."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(f"The service needs {package}: {how_to_install(package)}")


def check_is_there(db: str) -> None:
    """Refuse a file that is not there."""
    from rankpolicy.service.log import is_url

    if not is_url(db) and not Path(db).is_file():
        raise RankPolicyError(f"there is no database at {db}. Name the one of your service with --db.")


@contextmanager
def opened(db: str, *, role: str, must_exist: bool = True) -> Iterator[Store]:
    """The database in a file, made where it may be missing, or at the URL of PostgreSQL; ``role`` as ``SqliteStore`` has it."""
    need_serve()
    from rankpolicy.service.log import open_store

    if must_exist:
        check_is_there(db)
    with closing(open_store(db, role=role)) as store:
        yield store


def now_of(store: Store) -> int:
    """The time in microseconds since 1970, not before the last time in the database."""
    return max(time.time_ns() // 1000, store.last_stamp() + 1)


def time_from(option: str, text: str | None) -> int | None:
    """A date and perhaps a time, in UTC unless it has a zone, as microseconds since 1970; None stays None.

    >>> time_from("--since", "1970-01-02")
    86400000000
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RankPolicyError(
            f"{option} must be a date such as 2026-11-01 or 2026-11-01T12:30; got {text!r:.40}."
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, round(moment.timestamp() * 1e6))


def share_from(text: str) -> float:
    """A share such as 10% or 0.1.

    >>> share_from("10%"), share_from("0.25")
    (0.1, 0.25)
    """
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise RankPolicyError(f"--share must be above 0% and at most 100%, such as 10% or 0.1; got {text!r:.40}.")
    return share
