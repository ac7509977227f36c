"""rankpolicy service delete

A running service is not disturbed; lists whose window is open stay. With retention_days in the configuration a service does the same
every hour. The deletion is in the audit log.

Parameters
----------
before : DATE
    Lists shown before are deleted, such as 2026-10-01.

Examples
--------
rankpolicy service export --out logs/ && rankpolicy service delete --before 2026-10-01
"""

from __future__ import annotations

from rankpolicy.cli.service.database import Db, now_of, opened, time_from
from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import answer


def delete(
    *,
    before: str,
    db: Db = "rankpolicy.db",
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Delete old lists with their events. What policies learned from them stays, and replay goes on from there."""
    end = time_from("--before", before)
    assert end is not None
    with opened(db, role="keys") as store:
        from rankpolicy.service.log.retention import delete_before

        rows = delete_before(store, end, author="command line", now=now_of(store))
    text = f"{rows:,} rows of the log were deleted." if rows else "there is nothing to delete."
    answer({"deleted_rows": rows}, text, as_json=as_json)
