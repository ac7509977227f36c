"""Who looks at the dashboard: a session of a key with the scope "dashboard", or without keys anybody on this machine."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from rankpolicy.service.domain.keys import StoredKey, matching_key
from rankpolicy.service.http.access import Access, is_local
from rankpolicy.service.http.bodies import RefusedError

COOKIE = "rankpolicy_session"
SECONDS = 12 * 3600
MOST_SESSIONS = 1_000
SCOPE = "dashboard"
_MOST_BYTES = 16_384


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


class SignInError(Exception):
    """A page that needs a session; the browser is sent to the form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Whoever asks for a page."""

    key: StoredKey | None
    cookie: str
    is_new: bool

    def may(self, scope: str) -> bool:
        """Whether they may do something."""
        return self.key is None or scope in self.key.scopes


class Visitors:
    """Lets visitors in."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self.sessions = Sessions()

    def visitor(self, request: Request) -> Visitor:
        """Who asks; ``SignInError`` where they must sign in first."""
        keys = self._access.keys()
        cookie = request.cookies.get(COOKIE)
        session = self.sessions.known(cookie)
        if self._access.needs_no_key():
            if not is_local(request.scope):
                raise RefusedError(403, "forbidden", "without keys only callers on the same machine are served.")
            if session is None or session.key_id is not None or cookie is None:
                return Visitor(key=None, cookie=self.sessions.begin(None), is_new=True)
            return Visitor(key=None, cookie=cookie, is_new=False)
        key_id = None if session is None else session.key_id
        key = next((key for key in keys if key.key_id == key_id), None)
        if key is None or cookie is None or SCOPE not in key.scopes or key.has_expired(time.time()):
            raise SignInError
        return Visitor(key=key, cookie=cookie, is_new=False)

    def sign_in(self, key_text: str) -> str:
        """Begin a session with a key; its cookie."""
        key = matching_key(key_text.strip(), self._access.keys())
        if key is None:
            raise RefusedError(401, "unauthorized", "This is not a valid key.")
        if key.has_expired(time.time()):
            raise RefusedError(401, "unauthorized", "This key has expired.")
        if SCOPE not in key.scopes:
            raise RefusedError(403, "forbidden", "This key does not have the scope 'dashboard'.")
        return self.sessions.begin(key.key_id)

    async def checked_form(self, request: Request, visitor: Visitor) -> dict[str, str]:
        """The fields of a form that this site sent to this visitor."""
        fields = await read_form(request)
        if visitor.is_new or not self.sessions.is_token(visitor.cookie, fields.get("token", "")):
            raise RefusedError(403, "forbidden", "The form is out of date. Go back, read the page again and retry.")
        return fields


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, refused where another site sent it."""
    origin, host = request.headers.get("origin"), request.headers.get("host")
    foreign = origin is not None and urlsplit(origin).netloc != host
    if foreign or request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise RefusedError(403, "forbidden", "Forms of other sites are not taken.")
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise RefusedError(415, "unsupported_media_type", "Send a form.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise RefusedError(413, "too_large", "The form is too long.")
    try:
        fields = parse_qs(body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        raise RefusedError(400, "malformed", "The form has too many fields.") from None
    return {name: values[0] for name, values in fields.items()}


def set_cookie(request: Request, answer: Response, cookie: str | None) -> None:
    """Give the browser the cookie of its session; None takes it away."""
    is_secure = request.headers.get("x-forwarded-proto") == "https" or request.url.scheme == "https"
    common: dict[str, Any] = {"path": "/", "httponly": True, "samesite": "strict", "secure": is_secure}
    if cookie is None:
        answer.delete_cookie(COOKIE, **common)
    else:
        answer.set_cookie(COOKIE, cookie, max_age=SECONDS, **common)
