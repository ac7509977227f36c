"""Connections that send their headers too slowly, or too many of them, are closed: uvicorn itself would wait for ever."""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Any

from rankpolicy.service.http.quick import AnswerSoon, quick_protocol

HEADER_SECONDS = 10.0  # from the first byte of a request, or from the connection, until its headers have come
MOST_HEADER_BYTES = 64 * 1024


def impatient_protocol(answer_soon: AnswerSoon) -> type[asyncio.Protocol]:
    """Uvicorn's HTTP protocol, the quicker one where httptools is installed, with limits on the time and size of headers.

    Parameters
    ----------
    answer_soon
        Answers requests that need no task.
    """
    base: Any
    if importlib.util.find_spec("httptools") is not None:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

        base = quick_protocol(HttpToolsProtocol, answer_soon)
    else:
        from uvicorn.protocols.http.h11_impl import H11Protocol

        base = H11Protocol

    class ImpatientProtocol(base):  # type: ignore[misc]
        """A connection that must get on with it."""

        _patience: asyncio.TimerHandle | None = None
        _header_bytes = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait_for_headers()

        def data_received(self, data: bytes) -> None:
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
