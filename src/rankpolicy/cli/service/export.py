"""rankpolicy service export"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from rankpolicy.cli.support.options import Json
from rankpolicy.cli.support.output import made_directory, note, print_json
from rankpolicy.cli.service.database import Db, NotRandom, Since, now_of, opened, time_from

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy service export --since 2026-11-01 --out logs/

rankpolicy service export --policy random --out logs/ && rankpolicy clicks bias logs/lists.parquet --method randomised
"""


def export(
    out: Annotated[Path, typer.Option(help="A directory for the Parquet files.", show_default=False)],
    since: Since = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only lists shown before.", show_default="all")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Only lists of this policy.", show_default="all policies")] = None,
    event: Annotated[str, typer.Option(help="The type of event that counts as a click.")] = "click",
    db: Db = "rankpolicy.db",
    seed: NotRandom = 0,
    as_json: Json = False,
) -> None:
    """Write what was shown, with which probability, and what users did, as Parquet files.

    lists.parquet has one row per list and is what 'rankpolicy clicks' reads; items.parquet has the features of items, for 'rankpolicy
    train --data items.parquet --clicks lists.parquet --propensities bias.json'; events.parquet has one row per event; click_table.parquet
    is written where items have texts. A running service is not disturbed.
    """
    first, end = time_from("--since", since), time_from("--until", until)
    mask = os.umask(0o077)  # what users did is for the owner only
    try:
        directory = made_directory(out, option="--out")
        rows = _exported(db, directory, since=first, until=end, policy=policy, event=event)
    finally:
        os.umask(mask)
    if as_json:
        print_json({"out": str(directory), "rows": rows})
    else:
        note(", ".join(f"{number:,} rows in {directory / name}" for name, number in rows.items()))


def _exported(
    db: str, directory: Path, *, since: int | None, until: int | None, policy: str | None, event: str
) -> dict[str, int]:
    store = opened(db, role="reader")
    from rankpolicy.service.log.export import export_log
    from rankpolicy.types import RankPolicyError, unknown_name

    try:
        versions = store.versions()
        names = list(dict.fromkeys(version.policy for version in versions))
        if policy is not None and policy not in names:
            raise RankPolicyError(unknown_name("policy", policy, names))
        lists = store.logged(since=since or 0, until=until)
        chosen = (one for one in lists if policy is None or one.shown.policy == policy)
        return export_log(
            chosen,
            directory,
            versions={version.key: version.kind for version in versions},
            event=event,
            now=now_of(store),
        )
    finally:
        store.close()
