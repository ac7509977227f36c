"""Bodies of requests, which are checked before they are read, and of answers; refusals, and ids of requests."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from itertools import count
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response

from rankpolicy.service.domain.messages import ENCODER, MOST_BYTES, NewEvent, Problem, RankRequest
from rankpolicy.service.errors import DamagedStoreError, ServiceError
from rankpolicy.types import RankPolicyError

LONGEST_WAIT = 10.0  # seconds for a whole body to come

MessageT = TypeVar("MessageT")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
SendWhole = Callable[[int, bytes, Sequence[tuple[bytes, bytes]]], None]  # status, body and further headers

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


def header(scope: Scope, name: bytes) -> str | None:
    """A header of a request; None where it was not sent."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


async def read_body(scope: Scope, receive: Receive, *, kind: str = "application/json", most: int = MOST_BYTES) -> bytes:
    """The body of a POST request with this content type, of at most so many bytes."""
    check_post(scope, kind=kind, most=most)
    try:
        async with asyncio.timeout(LONGEST_WAIT):
            return await _whole_body(receive, most)
    except TimeoutError:
        # Otherwise the connection would wait for the rest of the body until it is closed as idle.
        reason = f"the body must come within {LONGEST_WAIT:g} seconds."
        raise RefusedError(408, "timeout", reason, (b"connection", b"close")) from None


def check_post(scope: Scope, *, kind: str, most: int) -> None:
    """Refuse a request that is no POST, has another content type, or announces too large a body."""
    if scope["method"] != "POST":
        raise RefusedError(405, "method_not_allowed", "use POST here.", (b"allow", b"POST"))
    content_type = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
    if content_type != kind:  # a form of a foreign web page cannot send this type unasked
        raise RefusedError(415, "unsupported_media_type", f"content-type must be {kind}.")
    announced = header(scope, b"content-length")
    if announced is not None and announced.isdigit() and int(announced) > most:
        raise _too_large(most)


def decoded(decoder: msgspec.json.Decoder[MessageT], body: bytes) -> MessageT:
    """The message in a body."""
    try:
        message = decoder.decode(body)
        # Of a key that came twice the message has one: a message without it needs fewer colons, wherever none is hidden by an escape.
        first = message[0] if isinstance(message, list) and message else message
        if not isinstance(first, RankRequest | NewEvent) or b"\\" in body or body.count(b":") > _colons(message):
            json.loads(body, object_pairs_hook=_with_keys_once, parse_int=str, parse_float=str)
        return message
    except msgspec.ValidationError as error:
        raise RefusedError(422, "invalid", f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(400, "malformed", f"the body must be JSON: {error}.") from None
    except RecursionError:
        raise RefusedError(400, "malformed", "the body is nested too deeply.") from None


def _colons(message: Any) -> int:
    return ENCODER.encode(message).count(b":")


def _with_keys_once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RefusedError(400, "malformed", f"an object must have each key once; got {twice!r:.80} twice.")


async def _whole_body(receive: Receive, most: int) -> bytes:
    blocks: list[bytes] = []
    size = 0
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "disconnected", "the connection was closed before the body had come.")
        block = message.get("body", b"")
        size += len(block)
        if size > most:
            raise _too_large(most)
        blocks.append(block)
        if not message.get("more_body", False):
            return b"".join(blocks)


def _too_large(most: int) -> RefusedError:
    # The rest of the body is not read, so the connection cannot be used again.
    return RefusedError(413, "too_large", f"a request must have at most {most} bytes.", (b"connection", b"close"))
