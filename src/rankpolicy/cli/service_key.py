"""rankpolicy service key"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from rankpolicy.cli.support.options import Json
from rankpolicy.cli.support.output import note, print_json
from rankpolicy.cli.support.serving import Db, NotRandom, opened
from rankpolicy.types import RankPolicyError, unknown_name

EXAMPLES = """
[bold]Examples[/bold]

rankpolicy service key new --scopes rank,events

rankpolicy service key list --db rankpolicy.db

rankpolicy service key revoke 0f3a5c1b2d4e
"""
ACTIONS = ("new", "list", "revoke")


def key(
    action: Annotated[str, typer.Argument(metavar="new|list|revoke", help="What to do.", show_default=False)],
    key_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="The key to revoke: what 'list' shows.", show_default=False)
    ] = None,
    scopes: Annotated[
        str, typer.Option(help="What a new key allows: rank, events, read, promote; comma-separated.")
    ] = "rank,events",
    db: Db = "rankpolicy.db",
    seed: NotRandom = 0,
    as_json: Json = False,
) -> None:
    """Make, list or revoke keys. A key is shown once, when it is made; the database holds its hash.

    A running service knows a new or revoked key after a second. With the first key, requests without one are refused.
    """
    if action not in ACTIONS:
        raise RankPolicyError(unknown_name("action", action, ACTIONS))
    if (action == "revoke") != (key_id is not None):
        raise RankPolicyError("give the ID of a key with revoke, and only there: rankpolicy service key revoke ID.")
    store = opened(db, role="keys", must_exist=action != "new")
    now = time.time_ns() // 1000
    try:
        if action == "new":
            from rankpolicy.service.keys import new_key

            made, stored = new_key([scope.strip() for scope in scopes.split(",") if scope.strip()])
            store.add_key(stored, now=now)
            if as_json:
                print_json({"key": made, "key_id": stored.key_id, "scopes": list(stored.scopes)})
            else:
                typer.echo(made)
                note("keep it: it is not shown again.")
        elif action == "list":
            found = [{"key_id": stored.key_id, "scopes": list(stored.scopes)} for stored in store.valid_keys()]
            if as_json:
                print_json({"keys": found})
            else:
                typer.echo("\n".join(f"{one['key_id']}  {','.join(one['scopes'])}" for one in found) or "no keys")
        else:
            assert key_id is not None
            if not store.revoke_key(key_id, now=now):
                raise RankPolicyError(f"there is no key {key_id!r:.80} in force. See: rankpolicy service key list.")
            if as_json:
                print_json({"revoked": key_id})
            else:
                note(f"{key_id} is revoked.")
    finally:
        store.close()
