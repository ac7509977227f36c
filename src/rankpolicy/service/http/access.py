"""Who may do what: keys with scopes; before the first key was made only callers on the same machine."""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable
from functools import lru_cache

from rankpolicy.service.domain.keys import StoredKey, matching_key
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.http.bodies import RefusedError, Scope, header

LOCAL = "this machine"  # author of changes where there are no keys
_AZURE_KEY = b"ocp-apim-subscription-key"  # where clients of Azure's services send their key
_CHALLENGE = (b"www-authenticate", b"Bearer")
KEY_ID = "rankpolicy.key_id"  # in the ASGI scope: the key of the request, once it was checked


class Access:
    """Checks the key of each request."""

    def __init__(self, read_keys: Callable[[], list[StoredKey]], had_keys: Callable[[], bool]) -> None:
        self._read_keys, self._read_had_keys = read_keys, had_keys
        self._keys: list[StoredKey] = []
        self._had_keys = False
        self._why_unknown: str | None = "the keys have not been read yet."  # None from the first look that succeeds
        self._expiring: dict[str, StoredKey] = {}
        self._allowances: dict[str, Allowance] = {}
        self.look()

    def check(self, scope: Scope, needed: str) -> str:
        """Refuse a request that may not do this; the id of its key, or "this machine" where there are no keys."""
        if self.needs_no_key():
            if not is_local(scope):
                raise RefusedError(403, "forbidden", "without keys only callers on the same machine are served.")
            scope[KEY_ID] = LOCAL
            return LOCAL
        authorization = header(scope, b"authorization") or ""
        kind, _, key = authorization.partition(" ")
        if kind.lower() != "bearer":
            key = header(scope, _AZURE_KEY) or ""
        known_key = matching_key(key.strip(), self._keys)
        if known_key is None:
            raise RefusedError(401, "unauthorized", "send a valid key: Authorization: Bearer rp_...", _CHALLENGE)
        scope[KEY_ID] = known_key.key_id
        return self.check_key(known_key, needed)

    def check_key(self, key: StoredKey, needed: str) -> str:
        """Refuse what a key does not allow, or not so often; its id."""
        self._check_expiry(key)
        if needed not in key.scopes:
            raise RefusedError(403, "forbidden", f"this key must have the scope {needed!r}; it has not.")
        self.charge(key.key_id)
        return key.key_id

    def charge(self, key_id: str) -> None:
        """Count a request against the rate of its key; refuse it where that is used up, or the key has expired meanwhile."""
        if key_id in self._expiring:
            self._check_expiry(self._expiring[key_id])
        allowance = self._allowances.get(key_id)
        if allowance is not None and (wait := allowance.seconds_until_next()) > 0:
            raise RefusedError(
                429,
                "too_many_requests",
                f"this key may send {allowance.rate:g} requests per second; send it again in {math.ceil(wait)} s.",
                (b"retry-after", str(math.ceil(wait)).encode()),
            )

    def needs_no_key(self) -> bool:
        """Whether no key was ever made."""
        self._check_known()
        return not self._had_keys

    def keys(self) -> list[StoredKey]:
        """The keys that are in force."""
        self._check_known()
        return self._keys

    def look(self) -> None:
        """Read the keys; what the last look met stays in force where the database fails. Not for the event loop: it may not answer."""
        try:
            keys = self._read_keys()
            had_keys = self._had_keys or bool(keys) or self._read_had_keys()
        except UnavailableError as error:
            self._why_unknown = self._why_unknown and str(error)
            return
        # Requests are checked meanwhile: what closes the service comes first.
        self._had_keys, self._why_unknown = had_keys, None
        self._expiring = {key.key_id: key for key in keys if key.expires is not None}
        rates = {key.key_id: key.rate for key in keys if key.rate is not None}
        self._allowances = {key_id: self._allowances.get(key_id) or Allowance(rate) for key_id, rate in rates.items()}
        self._keys = keys

    def _check_known(self) -> None:
        if self._why_unknown is not None:
            raise UnavailableError(self._why_unknown)

    def _check_expiry(self, key: StoredKey) -> None:
        if key.has_expired(time.time()):
            raise RefusedError(401, "unauthorized", "this key has expired; have a new one made.", _CHALLENGE)


class Allowance:
    """A token bucket: ``rate`` requests per second, and as many at once after a quiet second, but at least one."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self._clock = rate, clock
        self._most = max(1.0, rate)
        self._left, self._at = self._most, clock()

    def seconds_until_next(self) -> float:
        """Take one request; 0, or how long to wait where none is left.

        >>> now = [0.0]
        >>> allowance = Allowance(2.0, lambda: now[0])
        >>> [allowance.seconds_until_next() for _ in range(3)]
        [0.0, 0.0, 0.5]
        """
        now = self._clock()
        self._left, self._at = min(self._most, self._left + self.rate * (now - self._at)), now
        if self._left < 1:
            return (1 - self._left) / self.rate
        self._left -= 1
        return 0.0


def is_local(scope: Scope) -> bool:
    """Whether a request comes from this machine, was meant for it, and was not passed on by a proxy.

    The name that the caller used is checked too: a web page whose name leads to 127.0.0.1 (DNS rebinding) is not local.
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

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
