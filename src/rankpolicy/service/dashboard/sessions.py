"""Sessions of the dashboard: a random cookie, known to this process only, and a token in every form."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from hashlib import sha256
from typing import NamedTuple

COOKIE = "rankpolicy_session"
SECONDS = 12 * 3600
MOST_SESSIONS = 1_000


class Session(NamedTuple):
    """A browser that signed in, or on a service without keys, one that looked."""

    key_id: str | None  # None without keys
    until: float  # when it ends


class Sessions:
    """Sessions in memory: a restart ends them. Only hashes of the cookies are kept."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def begin(self, key_id: str | None) -> str:
        """A new session; the value of its cookie."""
        cookie = secrets.token_urlsafe(32)
        self._sessions[_hash(cookie)] = Session(key_id=key_id, until=time.monotonic() + SECONDS)
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return cookie

    def known(self, cookie: str | None) -> Session | None:
        """The session of a cookie; None where there is none or it has ended."""
        session = None if cookie is None else self._sessions.get(_hash(cookie))
        return session if session is not None and time.monotonic() < session.until else None

    def end(self, cookie: str | None) -> None:
        """End a session."""
        if cookie is not None:
            self._sessions.pop(_hash(cookie), None)

    def token(self, cookie: str) -> str:
        """The token that forms of a session carry: another site cannot know it, so it cannot send the form."""
        return hmac.new(self._secret, cookie.encode("utf-8", "replace"), sha256).hexdigest()

    def is_token(self, cookie: str, token: str) -> bool:
        """Whether a form carries the token of its session."""
        return hmac.compare_digest(self.token(cookie).encode(), token.encode("utf-8", "replace"))


def _hash(cookie: str) -> bytes:
    return sha256(cookie.encode("utf-8", "replace")).digest()
