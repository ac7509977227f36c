"""The short way of a request: no task and no messages between uvicorn and the application, where the whole request has come at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rankpolicy.service.http.answers import Scope, SendWhole

AnswerSoon = Callable[[Scope, bytes, SendWhole], bool]
QUICK_PATHS = {b"/v1/rank": "/v1/rank", b"/v1/events": "/v1/events"}


class QuickCycle:
    """A request on its short way, with what uvicorn's protocol reads of a request that is being answered.

    Parameters
    ----------
    keep_alive
        Whether the connection stays open after the answer.
    """

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


def quick_protocol(base: Any, answer_soon: AnswerSoon) -> Any:
    """Uvicorn's HTTP protocol over httptools, with a short way for requests whose body came together with their headers.

    A request that needs more (a body in parts, a policy that takes its time, a connection that is not read) goes uvicorn's way.

    Parameters
    ----------
    base
        Uvicorn's class.
    answer_soon
        Answers a request whose body is there; False where it cannot.
    """
    from uvicorn.protocols.http.httptools_impl import STATUS_LINE

    class QuickProtocol(base):  # type: ignore[misc]
        """A connection."""

        cycle: Any
        _held: bytes | None = None  # the body so far of a request that may go the short way

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._held is not None:  # the rest of the body comes later
                self._go_the_long_way()

        def on_headers_complete(self) -> None:
            path = QUICK_PATHS.get(self.url)
            if (
                path is None
                or (self.cycle is not None and not self.cycle.response_complete)
                or self.expect_100_continue
                or self.flow.write_paused
                or self.parser.should_upgrade()
                or len(self.connections) >= (self.limit_concurrency or len(self.connections) + 1)
            ):
                super().on_headers_complete()
                return
            self.scope["path"] = path
            self.scope["method"] = self.parser.get_method().decode("ascii")
            self._held = b""

        def on_body(self, body: bytes) -> None:
            if self._held is None:
                super().on_body(body)
            else:
                self._held += body

        def on_message_complete(self) -> None:
            if self._held is None:
                super().on_message_complete()
                return
            keeps = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
            cycle = QuickCycle(keeps)
            before, self.cycle = self.cycle, cycle

            def send(status: int, content: bytes, headers: Sequence[tuple[bytes, bytes]]) -> None:
                self._send_whole(cycle, status, content, headers)

            body, self._held = self._held, None
            if not answer_soon(self.scope, body, send):
                self.cycle, self._held = before, body
                self._go_the_long_way()
                super().on_message_complete()

        def _go_the_long_way(self) -> None:
            body, self._held = self._held, None
            if not self.transport.is_closing():
                super().on_headers_complete()
                super().on_body(body)

        def _send_whole(
            self, cycle: QuickCycle, status: int, content: bytes, headers: Sequence[tuple[bytes, bytes]]
        ) -> None:
            cycle.response_complete = True
            if cycle.disconnected or self.transport.is_closing():
                return
            parts = [STATUS_LINE[status]]
            for name, value in (*self.server_state.default_headers, *headers):
                parts += (name, b": ", value, b"\r\n")
            if not cycle.keep_alive:
                parts.append(b"connection: close\r\n")
            parts.append(b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(content))
            parts.append(content)
            self.transport.write(b"".join(parts))
            if not cycle.keep_alive:
                self.transport.close()
            self.on_response_complete()

    return QuickProtocol
