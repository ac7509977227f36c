"""The short way of a request: no task and no messages between uvicorn and the application, where the whole request has come at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from rankpolicy.service.http.bodies import Scope, SendWhole

Answer = Callable[[Scope, bytes, SendWhole], None]
QUICK_PATHS = {b"/v1/rank": "/v1/rank", b"/v1/events": "/v1/events"}
_MOST_HEADS = 8  # that are remembered of one connection
_LONGEST_HEAD = 2_048  # bytes, and
_MOST_HEADERS = 32  # of one that is remembered: a client, even without a key, decides what is in it
_END = b"\r\n\r\n"  # of a head
_UPGRADE = re.compile(rb"\r\nupgrade[ \t]*:", re.IGNORECASE)


class _Head(NamedTuple):
    """Request line and headers as they were parsed: a client sends nearly the same ones again and again."""

    scope: Scope
    keeps_alive: bool
    length: int  # of the body


class QuickCycle:
    """A request on its short way, with what uvicorn's protocol reads of a request that is being answered."""

    __slots__ = ("disconnected", "keep_alive", "response_complete")

    def __init__(self, keep_alive: bool) -> None:
        self.keep_alive = keep_alive
        self.disconnected = self.response_complete = False

    @property
    def message_event(self) -> QuickCycle:
        """Where uvicorn says that the connection is lost."""
        return self

    def set(self) -> None:
        """Nobody waits."""


class QuickProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP protocol, with a short way for lists and events whose body came together with their headers.

    Request line and headers that are, byte for byte, those of an earlier request of the connection are not parsed again. A request whose
    body comes in pieces, or on a connection that is not read or still waits for an answer, reaches the application through uvicorn.
    """

    cycle: Any
    scope: Any
    _held: bytes | None = None  # the body so far of a request that may go the short way
    _last_answer = 0.0  # in seconds of the event loop
    _is_between = True  # whether no request has come in part
    _reads_head = True  # whether what comes next is of a request line and headers
    _data = b""  # what the parser reads now, where a request begins there

    def __init__(self, answer: Answer, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._answer_request = answer

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._heads: dict[bytes, _Head] = {}

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_keepalive_if_required()  # uvicorn leaves it running after a reset, and the connection in memory
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        head, end, body = data.partition(_END)
        head_before = self._heads.get(head)
        if head_before is None and self._reads_head:
            # A wish to speak HTTP/2 (curl --http2) or WebSocket is ignored; the parser would not read the body of such a request.
            head, wishes = _UPGRADE.subn(b"\r\nx-ignored-upgrade:", head)
            data = head + end + body if wishes else data
        if (
            head_before is not None
            and end
            and len(body) == head_before.length
            and self._is_between
            and self._may_be_quick()
        ):
            self._answer(head_before.scope, body, head_before.keeps_alive)
            return
        self._data = data if self._is_between else b""
        super().data_received(data)
        self._data = b""
        if self._held is not None:  # the rest of the body comes later: uvicorn reads it
            body, self._held = self._held, None
            if not self.transport.is_closing():
                super().on_headers_complete()
                super().on_body(body)

    def _may_be_quick(self) -> bool:
        return (
            (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and (self.limit_concurrency is None or len(self.connections) < self.limit_concurrency)
        )

    def on_message_begin(self) -> None:
        self._is_between = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._reads_head = False
        path = QUICK_PATHS.get(self.url)
        method = self.parser.get_method()  # an answer to HEAD has no body, and uvicorn sees to that
        is_quick = path is not None and method == b"POST" and self._may_be_quick()
        if not is_quick or self.expect_100_continue or self.parser.should_upgrade():
            super().on_headers_complete()
            return
        self.scope["path"] = path
        self.scope["method"] = "POST"
        self._held = b""

    def on_body(self, body: bytes) -> None:
        if self._held is None:
            super().on_body(body)
        else:
            self._held += body

    def on_message_complete(self) -> None:
        self._is_between = self._reads_head = True
        if self._held is None:
            super().on_message_complete()
            return
        keeps_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        body, self._held = self._held, None
        self._answer(self.scope, body, keeps_alive)
        head, _, after_head = self._data.partition(_END)
        is_short = len(head) <= _LONGEST_HEAD and len(self.headers) <= _MOST_HEADERS
        if after_head == body and is_short:  # one request, and neither in chunks nor after another one
            if len(self._heads) >= _MOST_HEADS:
                self._heads.clear()
            self._heads[head] = _Head(self.scope, keeps_alive, len(body))

    def _answer(self, scope: Scope, body: bytes, keeps_alive: bool) -> None:
        self.cycle = cycle = QuickCycle(keeps_alive)
        self._answer_request(scope, body, partial(self._send_whole, cycle))

    def _send_whole(
        self, cycle: QuickCycle, status: int, content: bytes, headers: Sequence[tuple[bytes, bytes]]
    ) -> None:
        cycle.response_complete = True
        if cycle.disconnected or self.transport.is_closing():
            return
        lines = [STATUS_LINE[status]]
        for name, value in (*self.server_state.default_headers, *headers):
            lines += (name, b": ", value, b"\r\n")
        if not cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(content))
        lines.append(content)
        self.transport.write(b"".join(lines))
        if not cycle.keep_alive:
            self.transport.close()
        if self.pipeline or self.timeout_keep_alive_task is None:
            self.on_response_complete()
        else:  # the time-out of idle connections runs already
            self.server_state.total_requests += 1
            self._last_answer = self.loop.time()

    def timeout_keep_alive_handler(self) -> None:
        seconds_left = self._last_answer + self.timeout_keep_alive - self.loop.time()
        if self.cycle is not None and not self.cycle.response_complete:
            self.timeout_keep_alive_task = None  # the end of the answer starts it again
        elif seconds_left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(seconds_left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()
