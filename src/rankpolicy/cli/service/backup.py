"""rankpolicy service backup

The copy is a database like the other: to restore it, stop the service and serve the copy. It holds the hashes of keys and the secret
of random lists, so keep it as safe as the original.

Parameters
----------
copy : COPY
    The copy, a new file.

Examples
--------
rankpolicy service backup copy.db
rankpolicy service backup monday.db --db /var/lib/rankpolicy/service.db
"""

from __future__ import annotations

from pathlib import Path

from rankpolicy.cli.service.database import Db, check_is_there, need_serve
from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import answer
from rankpolicy.types import RankPolicyError


def backup(
    copy: Path,
    *,
    db: Db = "rankpolicy.db",
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Copy the database of a service while it runs, and check every row of the copy."""
    need_serve()
    from rankpolicy.service.log import is_url
    from rankpolicy.service.log.sqlite.backup import back_up

    if is_url(db):
        raise RankPolicyError("a PostgreSQL database is copied by its own tool: pg_dump.")
    check_is_there(db)
    rows = back_up(Path(db), copy)
    counts = ", ".join(f"{number:,} {table}" for table, number in rows.items())
    document = {"copy": str(copy), "bytes": copy.stat().st_size, "rows": rows}
    answer(document, f"{copy}: {counts}; every row is as it was written.", as_json=as_json)
