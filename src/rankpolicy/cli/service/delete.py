"""rankpolicy service delete"""

from __future__ import annotations

from typing import Annotated

import typer

from rankpolicy.cli.support.options import Json
from rankpolicy.cli.support.output import note, print_json
from rankpolicy.cli.service.database import Db, NotRandom, now_of, opened, time_from

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy service export --out logs/ && rankpolicy service delete --before 2026-10-01
"""


def delete(
    before: Annotated[
        str,
        typer.Option(metavar="DATE", help="Lists shown before are deleted, such as 2026-10-01.", show_default=False),
    ],
    db: Db = "rankpolicy.db",
    seed: NotRandom = 0,
    as_json: Json = False,
) -> None:
    """Delete old lists with their events. What policies learned from them stays, and replay goes on from there.

    A running service is not disturbed; lists whose window is open stay. With retention_days in the configuration a service does the same
    every hour. The deletion is in the audit log.
    """
    end = time_from("--before", before)
    assert end is not None
    store = opened(db, role="keys")
    from rankpolicy.service.log.retention import delete_before

    try:
        rows = delete_before(store, end, who="command line", now=now_of(store))
    finally:
        store.close()
    if as_json:
        print_json({"deleted_rows": rows})
    else:
        note(f"{rows:,} rows of the log were deleted." if rows else "there is nothing to delete.")
