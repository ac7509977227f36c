"""The id of a request, by which a caller's log and ours can be put side by side."""

from __future__ import annotations

import re
import secrets
from itertools import count

from rankpolicy.service.http.answers import Scope

REQUEST_ID = b"x-request-id"
_SANE = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")
_PROCESS = secrets.token_hex(6).encode()
_numbers = count(1)


def request_id_of(scope: Scope) -> bytes:
    """What the caller sent as X-Request-Id, if a log can hold it as it is; otherwise a new id."""
    for name, value in scope["headers"]:
        if name == REQUEST_ID and _SANE.fullmatch(value):
            return bytes(value)
    return b"%s-%d" % (_PROCESS, next(_numbers))
