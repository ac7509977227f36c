"""rankpolicy service backup"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankpolicy.cli.support.options import Json
from rankpolicy.cli.support.output import note, print_json
from rankpolicy.cli.service.database import Db, NotRandom, need_serve
from rankpolicy.types import RankPolicyError

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy service backup copy.db

rankpolicy service backup monday.db --db /var/lib/rankpolicy/service.db
"""


def backup(
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="The copy, a new file.", show_default=False)],
    db: Db = "rankpolicy.db",
    seed: NotRandom = 0,
    as_json: Json = False,
) -> None:
    """Copy the database of a service while it runs, and check every row of the copy.

    The copy is a database like the other: to restore it, stop the service and serve the copy. It holds the hashes of keys and the secret
    of random lists, so keep it as safe as the original.
    """
    need_serve()
    from rankpolicy.service.log.locations import is_url
    from rankpolicy.service.log.sqlite.backup import back_up

    if is_url(db):
        raise RankPolicyError("a PostgreSQL database is copied by its own tool: pg_dump.")
    if not Path(db).is_file():
        raise RankPolicyError(f"there is no database at {db}. Name the one of your service with --db.")
    rows = back_up(Path(db), copy)
    if as_json:
        print_json({"copy": str(copy), "bytes": copy.stat().st_size, "rows": rows})
    else:
        note(
            f"{copy}: {', '.join(f'{number:,} {table}' for table, number in rows.items())}; every row is as it was written."
        )
