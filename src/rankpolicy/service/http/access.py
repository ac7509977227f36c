"""Who may do what: keys with scopes; without any key only callers on the same machine."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from functools import lru_cache

from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.http.answers import RefusedError, Scope
from rankpolicy.service.http.bodies import header
from rankpolicy.service.keys import StoredKey, matching_key

_SECONDS_BETWEEN_LOOKS = 1.0  # a new or revoked key is known after this time
LOCAL = "this machine"  # who changes something where there are no keys
_CHALLENGE = (b"www-authenticate", b"Bearer")
SESSION_KEY = "rankpolicy.key"  # in the ASGI scope, where no client can write: the key of a session of the dashboard


class Access:
    """Checks the key of each request.

    Parameters
    ----------
    read_keys
        The keys that are in force now.
    """

    def __init__(self, read_keys: Callable[[], list[StoredKey]]) -> None:
        self._read_keys = read_keys
        self._keys: list[StoredKey] = []
        self._next_look = 0.0

    def check(self, scope: Scope, needed: str) -> str:
        """Refuse a request that may not do this; the id of its key, or "this machine" where there are no keys.

        Parameters
        ----------
        scope
            The ASGI scope.
        needed
            The scope of the key that is needed, of ``SCOPES``.
        """
        self._look()
        if not self._keys:
            if not is_local(scope):
                raise RefusedError(403, "forbidden", "without keys only callers on the same machine are served.")
            return LOCAL
        given = header(scope, b"authorization") or ""
        kind, _, key = given.partition(" ")
        found = matching_key(key.strip(), self._keys) if kind.lower() == "bearer" else scope.get(SESSION_KEY)
        if found is None:
            raise RefusedError(401, "unauthorized", "send a valid key: Authorization: Bearer rp_...", _CHALLENGE)
        if needed not in found.scopes:
            raise RefusedError(403, "forbidden", f"this key must have the scope {needed!r}; it has not.")
        return found.key_id

    def keys(self) -> list[StoredKey]:
        """The keys that are in force."""
        self._look()
        return self._keys

    def _look(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _SECONDS_BETWEEN_LOOKS
        try:
            self._keys = self._read_keys()
        except UnavailableError:
            if not self._keys:  # whether there are keys is not known
                self._next_look = 0.0
                raise


def is_local(scope: Scope) -> bool:
    """Whether a request comes from this machine, was meant for it, and was not passed on by a proxy.

    The name that the caller used is checked too: a web page whose name leads to 127.0.0.1 (DNS rebinding) is not local.

    Parameters
    ----------
    scope
        The ASGI scope.
    """
    client = scope.get("client")
    if client is None or not is_loopback(client[0]):
        return False
    if header(scope, b"x-forwarded-for") is not None or header(scope, b"forwarded") is not None:
        return False
    host = header(scope, b"host") or ""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return is_loopback(name)


@lru_cache(maxsize=256)
def is_loopback(name: str) -> bool:
    """Whether a host name or address is this machine.

    Parameters
    ----------
    name
        The name or address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
