"""The ASGI application: lists and events by one short way, everything else by Starlette, and no bad input that ends in a 500."""

from __future__ import annotations

import asyncio
import re
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.exceptions import HTTPException
from starlette.routing import Router

from rankpolicy.service.dashboard import Dashboard
from rankpolicy.service.domain.messages import ENCODER, MOST_BYTES, MOST_EVENTS, REQUEST, EventsAnswer, NewEvent
from rankpolicy.service.http.access import KEY_ID, Access
from rankpolicy.service.http.bodies import (
    REQUEST_ID,
    Receive,
    RefusedError,
    Scope,
    Send,
    SendWhole,
    check_post,
    decoded,
    problem_of,
    read_body,
    refusal_of,
    request_id_of,
    send_answer,
)
from rankpolicy.service.http.openapi import POSTED, READ
from rankpolicy.service.http.prometheus import Metrics, host_gauges
from rankpolicy.service.http.routes import refusal_by, routed_pages
from rankpolicy.service.http.traces import Traces
from rankpolicy.service.json_log import AccessLog
from rankpolicy.service.log.journal import Done
from rankpolicy.service.ranking_service import RankingService

RANK, EVENTS = "/v1/rank", "/v1/events"
# In the ASGI scope, where no client can write: the keys with which the request was let in.
_CHECKED = "rankpolicy.checked"
_EVENTS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    NewEvent | Annotated[list[NewEvent], Meta(max_length=MOST_EVENTS)]
)
_PATHS = {*POSTED, *READ, "/v2/rerank", "/openapi.json"}
_PATTERNS = [(re.compile(re.sub(r"{\w+}", "[^/]+", path)), path) for path in _PATHS if "{" in path]


class Application:
    """ASGI application of a service.

    Parameters
    ----------
    service
        The service; it is started and stopped with the application.
    report
        Called with the traceback of a failure that bad input does not explain.
    access_log
        Gets a line for some of the requests; None for none.
    """

    def __init__(
        self,
        service: RankingService,
        *,
        report: Callable[[str], None] = lambda text: None,
        access_log: AccessLog | None = None,
    ) -> None:
        self._traces = Traces() if service.config.traces else None
        self._service, self._report, self._access_log = service, report, access_log
        self.num_connections: Callable[[], int] = lambda: 0  # open ones; set by the server
        self.metrics = Metrics()
        self._bytes_in_flight = 0  # of bodies that are being read, or wait for their answer
        self._access = Access(service.reader.valid_keys, service.reader.had_keys)
        service.at_each_look(self._access.look)
        self.dashboard = Dashboard(service, self._access, report=report)
        self._pages = routed_pages(service, self._access, self._metrics_text, self.dashboard.routes())
        self._pages.lifespan_context = self._running

    def answer(self, scope: Scope, body: bytes, send: SendWhole) -> None:
        """Answer a request for a list or with events whose whole body is there, without a task.

        ``send`` is called once, in the event loop: now, or after the commit that holds the list or the events.

        Parameters
        ----------
        scope
            The ASGI scope.
        body
            The body.
        send
            Called with status, body and further headers of the answer.
        """
        self._bytes_in_flight += len(body)
        done = self._begun(scope, [len(body)], send)
        try:
            self._let_in(scope)
            self._submit(scope["path"], body, done)
        except Exception as error:
            done(error)

    async def _answer_when_read(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The same where the body comes in pieces, or through another server."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        sizes: list[int] = []

        def send_later(*answer: Any) -> None:
            if not answered.cancelled():
                answered.set_result(answer)

        done = self._begun(scope, sizes, send_later)
        try:
            self._let_in(scope)
            self._submit(scope["path"], await read_body(scope, self._counted(receive, sizes)), done)
        except asyncio.CancelledError:
            self._bytes_in_flight -= sum(sizes)
            raise
        except Exception as error:
            done(error)
        await send_answer(send, *await answered)

    def _begun(self, scope: Scope, sizes: list[int], send: SendWhole) -> Done:
        """Count a request, in which so many bytes are in flight at its end; what is returned takes its outcome, and answers."""
        start, request_id = time.perf_counter(), request_id_of(scope)

        def done(outcome: Any) -> None:
            self._bytes_in_flight -= sum(sizes)
            if isinstance(outcome, Exception):
                refusal = self._refusal(scope, outcome, request_id)
                status, content, headers = refusal.status, problem_of(refusal), refusal.headers
            else:
                status = self._count_events(outcome) if scope["path"] == EVENTS else 200
                content, headers = ENCODER.encode(outcome), ()
            send(status, content, ((REQUEST_ID, request_id), *headers))
            self._count(scope, request_id, status, time.perf_counter() - start)

        return done

    def _counted(self, receive: Receive, sizes: list[int]) -> Receive:
        """What receives the same, and counts bytes as they come: those that are only announced fill no memory."""

        async def counted() -> Any:
            message = await receive()
            if block := message.get("body"):
                sizes.append(len(block))
                self._bytes_in_flight += len(block)
                self._check_bytes()
            return message

        return counted

    def _let_in(self, scope: Scope) -> None:
        """Refuse a request for a list or with events that may not be read now, or by this caller."""
        # The cheapest checks first: under overload most requests go no further.
        self._service.check_load()
        self._check_bytes()
        keys = self._access.keys()
        # A scope that is reused has the same request line and headers; with the same keys in force it needs no second check.
        if scope.get(_CHECKED) is keys:
            self._access.charge(scope[KEY_ID])
            return
        self._access.check(scope, "rank" if scope["path"] == RANK else "events")
        check_post(scope, kind="application/json", most=MOST_BYTES)
        scope[_CHECKED] = keys

    def _submit(self, path: str, body: bytes, done: Done) -> None:
        if path == RANK:
            self._service.submit_request(decoded(REQUEST, body), done, body=body)
        else:
            message = decoded(_EVENTS, body)
            self._service.submit_events(message if isinstance(message, list) else [message], done)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a connection."""
        if scope["type"] == "lifespan":
            await self._pages.lifespan(scope, receive, send)
        elif scope["type"] == "http":
            answer = self._answer_when_read if scope["path"] in (RANK, EVENTS) else self._show_page
            await answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _show_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, request_id = time.perf_counter(), request_id_of(scope)
        marked, sizes = _Marked(send, request_id), list[int]()
        try:
            scope["app"] = self._pages  # with it, the router raises where it has no page
            await self._pages(scope, self._counted(receive, sizes), marked)
        except Exception as error:
            if marked.status:  # the answer has begun; the connection is closed
                raise
            await self._refuse(marked, scope, error, request_id)
        finally:
            self._bytes_in_flight -= sum(sizes)
            self._count(scope, request_id, marked.status, time.perf_counter() - start)

    def _check_bytes(self) -> None:
        """Refuse a request where those that are being read and answered, with this one, are too large together."""
        most = self._service.config.max_megabytes_in_flight
        if self._bytes_in_flight > 1e6 * most:
            self._service.num_shed += 1
            reason = f"requests of more than {most:g} megabytes are being answered. Send it again later."
            raise RefusedError(503, "unavailable", reason, (b"retry-after", b"1"), (b"connection", b"close"))

    def _count(self, scope: Scope, request_id: bytes, status: int, seconds: float) -> None:
        path = scope["path"]
        self.metrics.count(_named(path), status, seconds)
        if self._traces is not None:
            self._traces.add(scope, _named(path), request_id, status, seconds)
        self.dashboard.rates.count(path, status, seconds)
        if self._access_log is not None and self._access_log.wants_next():
            client = scope.get("client")
            self._access_log.add(
                {
                    "request_id": request_id.decode(),
                    "method": scope["method"],
                    "path": path,
                    "status": status,
                    "milliseconds": round(1e3 * seconds, 3),
                    "key_id": scope.get(KEY_ID),
                    "client": client[0] if client else None,
                }
            )

    async def _metrics_text(self) -> str:
        journal = self._service.journal
        gauges = {
            "ready": float(self._service.failure is None),
            "commits": journal.num_commits,
            "lessons": journal.num_lessons,
            "waiting": journal.num_waiting,
            "queue_age_seconds": journal.oldest_seconds,
            "unlogged_lists": self._service.num_unlogged,
            "late": journal.num_late,
            "shed": self._service.num_shed,
            "connections": self.num_connections(),
        }
        counters = {"writer_restarts_total": journal.num_writer_restarts, "fsync_seconds_total": journal.sync_seconds}
        return self.metrics.text(gauges | await asyncio.to_thread(host_gauges, self._service.config), counters)

    def _count_events(self, answer: EventsAnswer) -> int:
        """Count events by what became of them; the status of the answer."""
        stored = {fate: getattr(answer, fate) for fate in ("accepted", "duplicate", "orphan", "late")}
        for fate, number in stored.items():
            self.metrics.events[fate] += number
        self.metrics.events["rejected"] += len(answer.rejected)
        num_stored = sum(stored.values())
        self.dashboard.rates.count_events(num_stored + len(answer.rejected), answer.late)
        return answer.rejected[0].status if answer.rejected and not num_stored else 200

    async def _refuse(self, send: Send, scope: Scope, error: Exception, request_id: bytes) -> None:
        # Not where the error was caught: a variable there that holds it is a cycle, which only the garbage collector ends.
        refusal = self._refusal(scope, error, request_id)
        await send_answer(send, refusal.status, problem_of(refusal), refusal.headers)

    def _refusal(self, scope: Scope, error: Exception, request_id: bytes) -> RefusedError:
        refusal = refusal_by(self._pages, scope, error) if isinstance(error, HTTPException) else refusal_of(error)
        if refusal is not None:
            return refusal
        self._report(f"request {request_id.decode()} failed: {''.join(traceback.format_exception(error))}")
        return RefusedError(500, "failed", "the service failed; its log says why.")

    @asynccontextmanager
    async def _running(self, pages: Router) -> AsyncIterator[None]:
        self._service.start()
        self.dashboard.start()
        yield
        await asyncio.to_thread(self.dashboard.stop)
        await asyncio.to_thread(self._service.stop)
        if self._access_log is not None:
            await asyncio.to_thread(self._access_log.stop)
        if self._traces is not None:
            await asyncio.to_thread(self._traces.stop)


class _Marked:
    """Sends with the id of the request, and remembers the status of the answer; 0 before it has begun."""

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send, self._request_id = send, request_id
        self.status = 0

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), (REQUEST_ID, self._request_id)]}
        await self._send(message)


def _named(path: str) -> str:
    """The path as metrics name it; there are few names, whatever is asked for."""
    if path in _PATHS:
        return path
    return next((name for pattern, name in _PATTERNS if pattern.fullmatch(path)), "other")
