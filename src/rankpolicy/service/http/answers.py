"""What goes back over the wire: JSON, and one form for everything that is refused."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from itertools import count
from typing import Any

import msgspec
from starlette.responses import Response

from rankpolicy.service.domain.messages import Problem
from rankpolicy.service.errors import DamagedStoreError, ServiceError
from rankpolicy.types import RankPolicyError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
SendWhole = Callable[[int, bytes, Sequence[tuple[bytes, bytes]]], None]  # status, body and further headers

ENCODER = msgspec.json.Encoder()
_JSON = (b"content-type", b"application/json")
_RETRY = (b"retry-after", b"1")
REQUEST_ID = b"x-request-id"  # by which the log of a caller and ours are put side by side
_SANE = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")
_PROCESS = secrets.token_hex(6).encode()
_numbers = count(1)
_ERRORS = {409: "conflict", 503: "unavailable"}


class RefusedError(Exception):
    """A request that gets a 4xx or 503."""

    def __init__(self, status: int, error: str, message: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(message)
        self.status, self.error, self.message, self.headers = status, error, message, headers


def refusal_of(error: Exception) -> RefusedError | None:
    """The answer to an error that is not a failure of the service; None for one that is."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, ServiceError) and error.status in _ERRORS:
        headers = (_RETRY,) if error.status == 503 else ()
        return RefusedError(error.status, _ERRORS[error.status], str(error), *headers)
    if isinstance(error, RankPolicyError) and not isinstance(error, DamagedStoreError):
        return RefusedError(422, "invalid", str(error))
    return None


async def send_answer(send: Send, status: int, content: bytes, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Answer with JSON."""
    length = (b"content-length", str(len(content)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": content})


def json_response(body: Any, status: int = 200) -> Response:
    """The answer of a page with what msgspec can encode."""
    return Response(ENCODER.encode(body), status, media_type="application/json")


def problem_of(refusal: RefusedError) -> bytes:
    """The body of an answer that says why a request was refused."""
    return ENCODER.encode(Problem(error=refusal.error, message=refusal.message))


def request_id_of(scope: Scope) -> bytes:
    """What the caller sent as X-Request-Id, if a log can hold it as it is; otherwise a new id."""
    for name, value in scope["headers"]:
        if name == REQUEST_ID and _SANE.fullmatch(value):
            return bytes(value)
    return b"%s-%d" % (_PROCESS, next(_numbers))
