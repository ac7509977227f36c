"""Limits of connections: how many there are, and the time and size of headers; uvicorn itself would wait for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from rankpolicy.service.http.protocol import QuickProtocol

HEADER_SECONDS = 10.0  # from the first byte of a request, or from the connection, until its headers have come
MOST_HEADER_BYTES = 64 * 1024
MOST_CONNECTIONS = 1_024
_HEALTH = (b"/healthz", b"/readyz")  # answered however many connections there are


class ConnectionLimits:
    """The open connections of a server: at most ``most``, and three quarters of them from one address."""

    def __init__(self, most: int = MOST_CONNECTIONS) -> None:
        self.most, self.most_per_address = most, most * 3 // 4  # a proxy has one address for all its clients
        self.by_activity: dict[LimitedProtocol, None] = {}  # the one that was silent longest first
        self.per_address: Counter[str] = Counter()


class LimitedProtocol(QuickProtocol):
    """A connection with limits on the time and size of its headers."""

    _patience: asyncio.TimerHandle | None = None
    _header_bytes = 0
    _address = ""

    def __init__(self, limits: ConnectionLimits, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._limits = limits

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._limits.per_address[self._address] += 1
        if self._limits.per_address[self._address] > self._limits.most_per_address:
            self._drop_idle(self._address)
        elif len(self._limits.by_activity) >= self._limits.most:
            self._drop_idle(None)
        self._limits.by_activity[self] = None
        self._wait_for_headers()

    def _drop_idle(self, address: str | None) -> None:
        """Close the connection, of this address or of any, that has been silent longest and waits for no answer."""
        for other in self._limits.by_activity:
            if address in (None, other._address) and not other._is_answering() and not other.transport.is_closing():
                other.transport.abort()
                return

    def on_headers_complete(self) -> None:
        limits = self._limits
        has_room = (
            len(limits.by_activity) <= limits.most and limits.per_address[self._address] <= limits.most_per_address
        )
        # Uvicorn answers with 503 where there are as many connections as this.
        self.limit_concurrency = None if has_room or self.url in _HEALTH else 0
        super().on_headers_complete()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Whether the connection stays open: a client that has sent all it will send still gets its answer."""
        if not self._is_answering():
            return False
        self.cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        self._limits.by_activity.pop(self, None)
        self._limits.by_activity[self] = None
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
        self._limits.by_activity.pop(self, None)
        self._limits.per_address[self._address] -= 1
        if not self._limits.per_address[self._address]:
            del self._limits.per_address[self._address]
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
