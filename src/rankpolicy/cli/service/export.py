"""rankpolicy service export

lists.parquet has one row per list and is what 'rankpolicy clicks' reads; items.parquet has the features of items, for 'rankpolicy
train --data items.parquet --clicks lists.parquet --propensities bias.json'; events.parquet has one row per event; click_table.parquet
is written where items have texts. A running service is not disturbed.

Parameters
----------
out
    A directory for the Parquet files.
until : DATE, default all
    Only lists shown before.
policy : default all policies
    Only lists of this policy.
event
    The type of event that counts as a click.

Examples
--------
rankpolicy service export --since 2026-11-01 --out logs/
rankpolicy service export --policy random --out logs/ && rankpolicy clicks bias logs/lists.parquet --method randomised
"""

from __future__ import annotations

import os
from pathlib import Path

from rankpolicy.cli.service.database import Db, Since, now_of, opened, time_from
from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import answer, made_directory
from rankpolicy.types import check_name


def export(
    *,
    out: Path,
    since: Since = None,
    until: str | None = None,
    policy: str | None = None,
    event: str = "click",
    db: Db = "rankpolicy.db",
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Write what was shown, with which probability, and what users did, as Parquet files."""
    first, end = time_from("--since", since), time_from("--until", until)
    mask = os.umask(0o077)  # what users did is for the owner only
    try:
        directory = made_directory(out)
        with opened(db, role="reader") as store:
            from rankpolicy.service.log.export import export_log

            kinds = {version.key: version.kind for version in store.versions()}
            names = list(dict.fromkeys(version.policy for version in store.versions()))
            check_name("policy", policy, names)
            logged = store.logged(since=first or 0, until=end)
            chosen = (entry for entry in logged if policy is None or entry.shown.policy == policy)
            rows = export_log(chosen, directory, versions=kinds, event=event, now=now_of(store))
    finally:
        os.umask(mask)
    text = ", ".join(f"{number:,} rows in {directory / name}" for name, number in rows.items())
    answer({"out": str(directory), "rows": rows}, text, as_json=as_json)
