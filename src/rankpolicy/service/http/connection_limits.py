"""Limits of connections: how many there are, and the time and size of headers; uvicorn itself would wait for ever."""

from __future__ import annotations

import asyncio
import importlib.util
from collections import Counter
from typing import Any

from rankpolicy.service.http.protocol import AnswerSoon, quick_protocol

HEADER_SECONDS = 10.0  # from the first byte of a request, or from the connection, until its headers have come
MOST_HEADER_BYTES = 64 * 1024
MOST_CONNECTIONS = 1_024
_HEALTH = (b"/healthz", b"/readyz")  # answered however many connections there are


def impatient_protocol(answer_soon: AnswerSoon, *, most_connections: int = MOST_CONNECTIONS) -> type[asyncio.Protocol]:
    """Uvicorn's HTTP protocol, the quicker one where httptools is installed, with limits on the time and size of headers.

    Parameters
    ----------
    answer_soon
        Answers requests that need no task.
    most_connections
        How many may be open; three quarters of them from one address.
    """
    most_per_address = most_connections * 3 // 4  # a proxy has one address for all its clients
    base: Any
    if importlib.util.find_spec("httptools") is not None:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

        base = quick_protocol(HttpToolsProtocol, answer_soon)
    else:
        from uvicorn.protocols.http.h11_impl import H11Protocol

        base = H11Protocol

    by_activity: dict[Any, None] = {}  # open connections, the one that was silent longest first
    per_address: Counter[str] = Counter()

    class ImpatientProtocol(base):  # type: ignore[misc]
        """A connection that must get on with it."""

        _patience: asyncio.TimerHandle | None = None
        _header_bytes = 0
        _address = ""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._address = self.client[0] if self.client else ""
            per_address[self._address] += 1
            if per_address[self._address] > most_per_address:
                self._drop_idle(self._address)
            elif len(by_activity) >= most_connections:
                self._drop_idle(None)
            by_activity[self] = None
            self._wait_for_headers()

        def _drop_idle(self, address: str | None) -> None:
            """Close the connection, of this address or of any, that has been silent longest and waits for no answer."""
            for other in by_activity:
                if address in (None, other._address) and not other._is_answering() and not other.transport.is_closing():
                    other.transport.abort()
                    return

        def on_headers_complete(self) -> None:
            has_room = len(by_activity) <= most_connections and per_address[self._address] <= most_per_address
            # Uvicorn answers with 503 where there are as many connections as this.
            self.limit_concurrency = None if has_room or self.url in _HEALTH else 0
            super().on_headers_complete()

        def eof_received(self) -> bool:
            """Whether the connection stays open: a client that has sent all it will send still gets its answer."""
            if not self._is_answering():
                return False
            self.cycle.keep_alive = False
            return True

        def data_received(self, data: bytes) -> None:
            by_activity.pop(self, None)
            by_activity[self] = None
            self._header_bytes += len(data)
            super().data_received(data)
            # Where the time-out of idle connections runs, the request was answered at once.
            if self._is_answering() or self.timeout_keep_alive_task is not None:
                self._have_patience()
            elif self._header_bytes > MOST_HEADER_BYTES:
                self._give_up()
            else:
                self._wait_for_headers()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self._is_answering():  # now the time-out of idle connections runs
                self._have_patience()

        def connection_lost(self, exc: Exception | None) -> None:
            by_activity.pop(self, None)
            per_address[self._address] -= 1
            if not per_address[self._address]:
                del per_address[self._address]
            self._have_patience()
            super().connection_lost(exc)

        def _is_answering(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _wait_for_headers(self) -> None:
            if self._patience is None:
                self._patience = self.loop.call_later(HEADER_SECONDS, self._give_up)

        def _have_patience(self) -> None:
            self._header_bytes = 0
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def _give_up(self) -> None:
            self._have_patience()
            if not self._is_answering():
                self.transport.close()

    return ImpatientProtocol
