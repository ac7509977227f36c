"""Keys of the interface: made once, shown once, stored as a hash, compared in constant time."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256

from rankpolicy.types import RankPolicyError, unknown_name

# Show lists; report events; read; change what is served; see the pages.
SCOPES = ("rank", "events", "read", "promote", "dashboard")
_PREFIX = "rp"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """What the database knows about a key.

    Parameters
    ----------
    key_id
        The public part of the key, by which it is listed and revoked.
    digest
        SHA-256 of the whole key. It has 256 random bits, so a slow hash would add nothing.
    scopes
        What it allows.
    """

    key_id: str
    digest: bytes
    scopes: tuple[str, ...]


def new_key(scopes: Sequence[str]) -> tuple[str, StoredKey]:
    """A key, which is not stored anywhere, and what is stored about it.

    Parameters
    ----------
    scopes
        What it allows, of ``SCOPES``.
    """
    for scope in scopes:
        if scope not in SCOPES:
            raise RankPolicyError(unknown_name("scope", scope, SCOPES))
    if not scopes:
        raise RankPolicyError(f"a key must have at least one scope: {', '.join(SCOPES)}.")
    key_id = secrets.token_hex(6)
    key = f"{_PREFIX}_{key_id}_{secrets.token_urlsafe(32)}"
    stored = StoredKey(key_id=key_id, digest=digest_of(key), scopes=tuple(dict.fromkeys(scopes)))
    return key, stored


def digest_of(key: str) -> bytes:
    """What is stored instead of a key.

    Parameters
    ----------
    key
        The key.
    """
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def matching_key(given: str, known: Collection[StoredKey]) -> StoredKey | None:
    """The stored key that was given; None where there is none.

    Every stored key is compared, each in constant time, so the time taken says nothing about how close a guess came.

    Parameters
    ----------
    given
        The text that a client sent.
    known
        The keys that are in force.

    >>> key, stored = new_key(["rank"])
    >>> matching_key(key, [stored]) is stored
    True
    >>> matching_key(key + "x", [stored]) is None
    True
    """
    digest, found = digest_of(given), None
    for stored in known:
        if hmac.compare_digest(stored.digest, digest):
            found = stored
    return found
