"""Keys of the interface: made once, shown once, stored as a hash, compared in constant time."""

from __future__ import annotations

import hmac
import math
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256

from rankpolicy.types import RankPolicyError, check_name

# Show lists; report events; read; change what is served; see the pages.
SCOPES = ("rank", "events", "read", "promote", "dashboard")
_PREFIX = "rp"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """What the database knows about a key."""

    key_id: str
    digest: bytes
    scopes: tuple[str, ...]
    expires: int | None = None
    rate: float | None = None

    def has_expired(self, now: float) -> bool:
        """Whether it allows nothing any more."""
        return self.expires is not None and now >= self.expires

    @property
    def terms(self) -> str:
        """Scopes and limits in one text, as the database has them."""
        limits = {"expires": self.expires, "rate": self.rate}
        return " ".join([*self.scopes, *(f"{name}={value}" for name, value in limits.items() if value is not None)])


def key_with_terms(key_id: str, digest: bytes, terms: str) -> StoredKey:
    """A key from what the database has.

    >>> key_with_terms("a", b"", "rank events rate=2.5").rate
    2.5
    """
    words = terms.split()
    limits = dict(word.split("=", 1) for word in words if "=" in word)
    return StoredKey(
        key_id=key_id,
        digest=digest,
        scopes=tuple(word for word in words if "=" not in word),
        expires=int(limits["expires"]) if "expires" in limits else None,
        rate=float(limits["rate"]) if "rate" in limits else None,
    )


def new_key(scopes: Sequence[str], *, expires: int | None = None, rate: float | None = None) -> tuple[str, StoredKey]:
    """A key, which is not stored anywhere, and what is stored about it."""
    if rate is not None and not 0 < rate < math.inf:
        raise RankPolicyError(f"the rate of a key must be a number of requests per second above 0; got {rate:g}.")
    for scope in scopes:
        check_name("scope", scope, SCOPES)
    if not scopes:
        raise RankPolicyError(f"a key must have at least one scope: {', '.join(SCOPES)}.")
    key_id = secrets.token_hex(6)
    key = f"{_PREFIX}_{key_id}_{secrets.token_urlsafe(32)}"
    stored = StoredKey(
        key_id=key_id, digest=digest_of(key), scopes=tuple(dict.fromkeys(scopes)), expires=expires, rate=rate
    )
    return key, stored


def digest_of(key: str) -> bytes:
    """What is stored instead of a key."""
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def matching_key(key: str, stored_keys: Collection[StoredKey]) -> StoredKey | None:
    """The stored key that was given; None where there is none.

    Every stored key is compared, each in constant time, so the time taken says nothing about how close a guess came.

    >>> key, stored = new_key(["rank"])
    >>> matching_key(key, [stored]) is stored
    True
    >>> matching_key(key + "x", [stored]) is None
    True
    """
    digest, match = digest_of(key), None
    for stored in stored_keys:
        if hmac.compare_digest(stored.digest, digest):
            match = stored
    return match
