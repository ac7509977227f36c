"""rankpolicy service key

A running service knows a new or revoked key after a second. With the first key, requests without one are refused.

Parameters
----------
action : new|list|revoke
    What to do.
key_id : ID
    The key to revoke: what 'list' shows.
scopes
    What a new key allows: rank, events, read, promote; comma-separated.
expires : default never
    When a new key ends: a date, or a date and time, in UTC.
rate : default any number
    Requests per second that a new key allows.

Examples
--------
rankpolicy service key new --scopes rank,events
rankpolicy service key new --scopes rank --expires 2027-12-31 --rate 50
rankpolicy service key list --db rankpolicy.db
rankpolicy service key revoke 0f3a5c1b2d4e
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from rankpolicy.cli.service.database import Db, opened
from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import answer, note, print_json
from rankpolicy.types import RankPolicyError, check_name

if TYPE_CHECKING:
    from rankpolicy.service.domain.keys import StoredKey
    from rankpolicy.service.log.store import Store

ACTIONS = ("new", "list", "revoke")


def key(
    action: str,
    key_id: str | None = None,
    *,
    scopes: str = "rank,events",
    expires: datetime | None = None,
    rate: float | None = None,
    db: Db = "rankpolicy.db",
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """Make, list or revoke keys. A key is shown once, when it is made; the database holds its hash."""
    check_name("action", action, ACTIONS)
    if (action == "revoke") != (key_id is not None):
        raise RankPolicyError("give the ID of a key with revoke, and only there: rankpolicy service key revoke ID.")
    if action != "new" and not (expires is None and rate is None):
        raise RankPolicyError("--expires and --rate are of a new key: rankpolicy service key new --expires 2027-01-31.")
    with opened(db, role="keys", must_exist=action != "new") as store:
        if action == "new":
            _new(store, scopes, expires, rate, as_json=as_json)
        elif key_id is None:
            keys = store.valid_keys()
            if as_json:
                print_json({"keys": [_described(stored) for stored in keys]})
            else:
                typer.echo("\n".join(map(_line, keys)) or "no keys")
        else:
            if not store.revoke_key(key_id, now=time.time_ns() // 1000):
                raise RankPolicyError(f"there is no key {key_id!r:.80} in force. See: rankpolicy service key list.")
            answer({"revoked": key_id}, f"{key_id} is revoked.", as_json=as_json)


def _new(store: Store, scopes: str, expires: datetime | None, rate: float | None, *, as_json: bool) -> None:
    from rankpolicy.service.domain.keys import new_key

    ends = None if expires is None else int(expires.replace(tzinfo=UTC).timestamp())
    if ends is not None and ends <= time.time():
        raise RankPolicyError(f"--expires must lie ahead; got {expires:%Y-%m-%d %H:%M:%S} UTC.")
    names = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    secret, stored = new_key(names, expires=ends, rate=rate)
    store.add_key(stored, now=time.time_ns() // 1000)
    if as_json:
        print_json({"key": secret} | _described(stored))
    else:
        typer.echo(secret)
        note("keep it: it is not shown again.")


def _described(key: StoredKey) -> dict[str, Any]:
    limits = {"expires": _moment(key.expires), "rate": key.rate}
    return {"key_id": key.key_id, "scopes": list(key.scopes)} | {
        name: value for name, value in limits.items() if value is not None
    }


def _line(key: StoredKey) -> str:
    ends = (
        ""
        if key.expires is None
        else f"  {'expired' if key.has_expired(time.time()) else 'until'} {_moment(key.expires)}"
    )
    limit = "" if key.rate is None else f"  {key.rate:g} requests per second"
    return f"{key.key_id}  {','.join(key.scopes)}{ends}{limit}"


def _moment(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
