"""rankpolicy service rollback"""

from __future__ import annotations

from typing import Annotated

import typer

from rankpolicy.cli.support.options import Json
from rankpolicy.cli.support.output import note, print_json
from rankpolicy.cli.service.database import Db, NotRandom, now_of, opened

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy service rollback --policy search

rankpolicy service rollback --policy search --reason "fewer purchases"
"""


def rollback(
    policy: Annotated[str, typer.Option(help="The policy.")] = "default",
    reason: Annotated[str, typer.Option(help="Why, for the audit log.")] = "",
    db: Db = "rankpolicy.db",
    seed: NotRandom = 0,
    as_json: Json = False,
) -> None:
    """End the canary of a policy; where there is none, return to the version before. A running service follows after a second."""
    store = opened(db, role="keys")
    from rankpolicy.service.learning.promotion import rollback as roll_back

    try:
        made = roll_back(store, policy, who="command line", detail=reason, now=now_of(store))
    finally:
        store.close()
    if as_json:
        print_json({"policy": policy, "version": made.version, "change": made.number})
    else:
        note(f"{policy}: version {made.version} serves everything.")
