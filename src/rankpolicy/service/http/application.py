"""The ASGI application: two quick paths, everything else to Starlette, and no bad input that ends in a 500."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from rankpolicy.service.dashboard import Dashboard
from rankpolicy.service.http.access import Access
from rankpolicy.service.http.answers import (
    ENCODER,
    Receive,
    RefusedError,
    Scope,
    Send,
    SendWhole,
    problem_of,
    refusal_of,
    send_json,
    send_refusal,
)
from rankpolicy.service.http.bodies import check_post, decoded, read_body
from rankpolicy.service.http.metrics import Metrics
from rankpolicy.service.http.pages import pages
from rankpolicy.service.messages import MOST_BYTES, MOST_EVENTS, EventIn, EventsAnswer, RankRequest
from rankpolicy.service.ranking_service import RankingService

RANK, EVENTS = "/v1/rank", "/v1/events"
_CHECKED = (
    "rankpolicy.checked"  # in the ASGI scope, where no client can write: the keys with which the request was let in
)
_RANK = msgspec.json.Decoder(RankRequest)
_EVENTS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    EventIn | Annotated[list[EventIn], Meta(max_length=MOST_EVENTS)]
)
_KNOWN = {
    RANK,
    EVENTS,
    "/v1/policies",
    "/v1/models",
    "/v1/evaluate",
    "/v1/audit",
    "/v1/ubi/queries",
    "/v1/ubi/events",
    "/metrics",
    "/healthz",
    "/readyz",
    "/openapi.json",
}


class Application:
    """ASGI application of a service.

    Parameters
    ----------
    service
        The service; it is started and stopped with the application.
    report
        Called with the traceback of a failure that is nobody's bad input.
    """

    def __init__(self, service: RankingService, *, report: Callable[[str], None] = lambda text: None) -> None:
        self._service, self._report = service, report
        self.metrics = Metrics()
        self._access = Access(service.reader.valid_keys)
        self.dashboard = Dashboard(service, self._access, self, report=report)
        self._pages = pages(service, self._access, self.metrics, self.dashboard.routes())
        self._quick: dict[str, Callable[[Scope, Receive, Send], Awaitable[int]]] = {
            RANK: self._rank,
            EVENTS: self._events,
        }

    def answer_soon(self, scope: Scope, body: bytes, send: SendWhole) -> bool:
        """Answer a request for a list or with events, whose whole body is there, without a task; False where it needs one.

        Parameters
        ----------
        scope
            The ASGI scope.
        body
            The body.
        send
            Called once with the answer, in the event loop: now, or after the commit that holds the list or the events.
        """
        path, start = scope["path"], time.perf_counter()

        def done(outcome: Any) -> None:
            if isinstance(outcome, Exception):
                refusal = self._refusal(outcome)
                status = refusal.status
                send(status, ENCODER.encode(problem_of(refusal)), refusal.headers)
            else:
                status = self._count_events(outcome) if path == EVENTS else 200
                send(status, ENCODER.encode(outcome), ())
            self._count(path, status, time.perf_counter() - start)

        try:
            keys = self._access.keys()
            # A scope that is reused has the same request line and headers; with the same keys in force it needs no second check.
            if scope.get(_CHECKED) is not keys:
                self._access.check(scope, "rank" if path == RANK else "events")
                check_post(scope, kind="application/json", most=MOST_BYTES)
                scope[_CHECKED] = keys
            if path == RANK:
                return self._service.rank_soon(decoded(_RANK, body), done, body=body)
            self._service.take_soon(_as_list(decoded(_EVENTS, body)), done)
        except Exception as error:
            done(error)
        return True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a connection.

        Parameters
        ----------
        scope, receive, send
            As ASGI has them.
        """
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, path, status = time.perf_counter(), scope["path"], 0
        quick = self._quick.get(path)
        counted = send if quick is not None else _Counted(send)
        try:
            if quick is not None:
                status = await quick(scope, receive, send)
            else:
                await self._pages(scope, receive, counted)
        except Exception as error:
            if isinstance(counted, _Counted) and counted.status:  # the answer has begun; the connection is closed
                raise
            status = await self._refuse(send, error)
        finally:
            if isinstance(counted, _Counted):
                status = counted.status or status
            self._count(path, status, time.perf_counter() - start)

    async def _rank(self, scope: Scope, receive: Receive, send: Send) -> int:
        self._access.check(scope, "rank")
        request = decoded(_RANK, await read_body(scope, receive))
        await send_json(send, 200, await self._service.rank(request))
        return 200

    async def _events(self, scope: Scope, receive: Receive, send: Send) -> int:
        self._access.check(scope, "events")
        answer = await self._service.take(_as_list(decoded(_EVENTS, await read_body(scope, receive))))
        status = self._count_events(answer)
        await send_json(send, status, answer)
        return status

    def _count(self, path: str, status: int, seconds: float) -> None:
        self.metrics.count(_named(path), status, seconds)
        self.dashboard.rates.count(path, status, seconds)

    def _count_events(self, answer: EventsAnswer) -> int:
        """Count events by what became of them; the status of the answer."""
        stored = {fate: getattr(answer, fate) for fate in ("accepted", "duplicate", "orphan", "late")}
        for fate, number in stored.items():
            self.metrics.events[fate] += number
        self.metrics.events["rejected"] += len(answer.rejected)
        num_stored = sum(stored.values())
        self.dashboard.rates.count_events(num_stored + len(answer.rejected))
        return answer.rejected[0].status if answer.rejected and not num_stored else 200

    async def _refuse(self, send: Send, error: Exception) -> int:
        # Not where the error was caught: a variable there that holds it is a cycle, which only the garbage collector ends.
        refusal = self._refusal(error)
        await send_refusal(send, refusal)
        return refusal.status

    def _refusal(self, error: Exception) -> RefusedError:
        known = refusal_of(error)
        if known is not None:
            return known
        self._report("".join(traceback.format_exception(error)))
        return RefusedError(500, "failed", "the service failed; its log says why.")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    self._service.start()
                    self.dashboard.start()
                except Exception as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await asyncio.to_thread(self.dashboard.stop)
                await asyncio.to_thread(self._service.stop)
                await send({"type": "lifespan.shutdown.complete"})
                return


class _Counted:
    """Sends, and remembers the status of the answer; 0 before it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _named(path: str) -> str:
    """The path as metrics name it; there are few names, whatever is asked for."""
    if path in _KNOWN:
        return path
    if path.startswith("/v1/policies/"):
        return "/v1/policies/{policy}/rollback" if path.endswith("/rollback") else "/v1/policies/{policy}/promote"
    return "/v1/rankings/{ranking_id}" if path.startswith("/v1/rankings/") else "other"


def _as_list(given: Any) -> list[EventIn]:
    return given if isinstance(given, list) else [given]
