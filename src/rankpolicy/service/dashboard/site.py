"""The pages of the dashboard: who may see them, what they are made of, and the headers they are sent with."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from rankpolicy.reports.html import environment, rendered
from rankpolicy.service.dashboard.evaluations import detail_of, evaluations_of, plain_text
from rankpolicy.service.dashboard.log_follower import ListRow, LogFollower, list_at
from rankpolicy.service.dashboard.overview import alarms_of, overview
from rankpolicy.service.dashboard.rates import Rates
from rankpolicy.service.dashboard.statistics import Statistics
from rankpolicy.service.dashboard.visitors import SignInError, Visitor, Visitors, read_form, set_cookie
from rankpolicy.service.domain.deployments import Change
from rankpolicy.service.domain.messages import ENCODER, LONGEST, REQUEST
from rankpolicy.service.http.access import KEY_ID, LOCAL, Access
from rankpolicy.service.http.bodies import RefusedError, refusal_of
from rankpolicy.service.http.changes import audit_lines, served_policy
from rankpolicy.service.http.prometheus import disk_bytes
from rankpolicy.service.http.routes import served_policies
from rankpolicy.service.learning.promotion import promote_version, rollback
from rankpolicy.service.log import open_store
from rankpolicy.service.log.store import Store
from rankpolicy.service.ranking_service import RankingService

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer browsers send forms of our own pages with the origin "null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
ASSETS = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_SECONDS_KEPT = 1.0  # statistics are computed once for all who ask meanwhile
_MOST_AUDIT = 500
_DONE = {"promote": "The version was promoted.", "rollback": "Rolled back."}
ACTIONS = tuple(_DONE)

Page = Callable[[Request, Visitor], Awaitable[Response]]


class Dashboard:
    """The pages, and the statistics behind them.

    Parameters
    ----------
    service
        The service.
    access
        Its keys.
    report
        Called with a sentence when the log cannot be read.
    """

    def __init__(
        self, service: RankingService, access: Access, *, report: Callable[[str], None] = lambda text: None
    ) -> None:
        self._service, self._access = service, access
        self._visitors = Visitors(access)
        self.rates = Rates()
        self.statistics = Statistics(service.config.window)
        self._follower = LogFollower(self._open_log, self.statistics, report=report)
        self._lock = threading.Lock()  # for what is kept: many browsers ask at the same moment
        self._kept: tuple[float, dict[str, Any]] = (-1e9, {})
        environment()  # an error here where Jinja2 is missing, not at the first page

    def start(self) -> None:
        """Begin to read the log."""
        self._follower.start()

    def stop(self) -> None:
        """End it."""
        self._follower.stop()

    def _open_log(self) -> Store:
        return open_store(self._service.config.place, role="reader")

    def routes(self) -> list[BaseRoute]:
        """Where the pages are."""
        return [
            Route("/", self._page(self._overview)),
            Route("/policies", self._page(self._policies)),
            Route("/queries", self._page(self._queries)),
            Route("/query", self._page(self._query)),
            Route("/audit", self._page(self._audit)),
            *(Route(f"/{action}", self._page(self._ask), methods=["GET"]) for action in ACTIONS),
            *(Route(f"/{action}", self._page(self._act), methods=["POST"]) for action in ACTIONS),
            Route("/login", self._framed(self._form_to_sign_in), methods=["GET"]),
            Route("/login", self._framed(self._sign_in), methods=["POST"]),
            Route("/logout", self._page(self._sign_out), methods=["POST"]),
            Route("/assets/{name}", self._asset),
            Route("/v1/statistics", self._numbers),
        ]

    async def document(self) -> dict[str, Any]:
        """All numbers of the overview."""
        rates, failure = self.rates.document(), self._service.failure
        statistics = await asyncio.to_thread(self._statistics)
        health = statistics["health"] | {"failure": failure}
        document = statistics | {"behind": self._follower.behind, "rates": rates, "health": health}
        return document | {"alarms": alarms_of(document)}

    def _statistics(self) -> dict[str, Any]:
        with self._lock:
            computed_at, statistics = self._kept
            if time.monotonic() - computed_at > _SECONDS_KEPT:
                statistics = self.statistics.document() | {"health": self._disk()}
                self._kept = (time.monotonic(), statistics)
            return statistics

    def _disk(self) -> dict[str, Any]:
        free, total = disk_bytes(self._service.config) or (None, None)
        return {"disk_free_bytes": free, "disk_total_bytes": total}

    # Pages ---------------------------------------------------------------------------------------------------------------------------

    async def _overview(self, request: Request, visitor: Visitor) -> Response:
        document = await self.document()
        return await self._html(visitor, "overview", **await asyncio.to_thread(overview, document))

    async def _queries(self, request: Request, visitor: Visitor) -> Response:
        document = await self.document()
        return await self._html(visitor, "queries", queries=document["queries"], longest=LONGEST)

    async def _query(self, request: Request, visitor: Visitor) -> Response:
        query = request.query_params.get("query", "")[:LONGEST]
        counts = await asyncio.to_thread(self.statistics.query, query)  # it waits while a block of the log is counted
        if counts is None:
            return await self._html(visitor, "unknown_query", 404, query=query)
        policies, lists = await asyncio.to_thread(self._explained, counts)
        groups = {item["id"]: item["group"] for item in counts["items"]}
        return await self._html(visitor, "query", counts=counts, policies=policies, lists=lists, groups=groups)

    def _explained(self, counts: dict[str, Any]) -> tuple[list[dict[str, Any]], list[tuple[ListRow, list[int]]]]:
        """What each policy would do with the last request for a query; its last lists with the positions that were clicked."""
        from rankpolicy.service.dashboard.policy_orders import explained  # not before: it loads compiled code

        with closing(self._open_log()) as store:
            rows_with_clicks = [(list_at(store, seq), clicked) for seq, clicked in counts["last_lists"]]
        lists = [
            (row, [position for position in range(len(row.shown.items)) if clicked >> position & 1])
            for row, clicked in rows_with_clicks
            if row is not None
        ]
        if not lists:
            return [], []
        request = REQUEST.decode(lists[0][0].request)
        served = self._service.policies.by_name.values()
        return [explained(live, request) for live in served if live.version.kind != "split"], lists

    async def _policies(self, request: Request, visitor: Visitor) -> Response:
        policies = await asyncio.to_thread(served_policies, self._service.policies)
        lines = await audit_lines(self._service, limit=_MOST_AUDIT)
        return await self._html(
            visitor,
            "policies",
            policies=policies,
            evaluations=evaluations_of(lines),
            may_act=visitor.may("promote"),
            message=_DONE.get(request.query_params.get("done", "")),
            plain_text=plain_text,
        )

    async def _audit(self, request: Request, visitor: Visitor) -> Response:
        lines = await audit_lines(self._service, limit=_MOST_AUDIT)
        return await self._html(visitor, "audit", lines=lines, detail_of=detail_of)

    # Actions -------------------------------------------------------------------------------------------------------------------------

    async def _ask(self, request: Request, visitor: Visitor) -> Response:
        fields = dict(request.query_params)
        action = request.url.path[1:]
        _check_fields(action, fields)
        return await self._html(visitor, "confirmation", action=action, fields=fields)

    async def _act(self, request: Request, visitor: Visitor) -> Response:
        fields = await self._visitors.checked_form(request, visitor)
        action = request.url.path[1:]
        _check_fields(action, fields)
        policy = served_policy(self._service, fields["policy"])
        key_id = request.scope[KEY_ID]
        if visitor.key is not None:
            self._access.check_key(visitor.key, "promote")

        def change(store: Store, now: int) -> Change:
            if action == "rollback":
                return rollback(store, policy, author=key_id, now=now)
            share = _share(fields.get("share", "100"))
            return promote_version(store, policy, int(fields["version"]), share=share, author=key_id, now=now)

        await self._service.changed(change)
        return RedirectResponse(f"/policies?done={action}", 303)

    # Sessions ------------------------------------------------------------------------------------------------------------------------

    async def _form_to_sign_in(self, request: Request) -> Response:
        if self._access.needs_no_key():
            return RedirectResponse("/", 303)
        return _response("sign_in", message="")

    async def _sign_in(self, request: Request) -> Response:
        fields = await read_form(request)
        try:
            cookie = self._visitors.sign_in(fields.get("key", ""))
        except RefusedError as error:
            return _response("sign_in", error.status, message=error.message)
        answer = RedirectResponse("/", 303)
        set_cookie(request, answer, cookie)
        return answer

    async def _sign_out(self, request: Request, visitor: Visitor) -> Response:
        await self._visitors.checked_form(request, visitor)
        self._visitors.sessions.end(visitor.cookie)
        answer = RedirectResponse("/login", 303)
        set_cookie(request, answer, None)
        return answer

    # Frames --------------------------------------------------------------------------------------------------------------------------

    def _page(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        """A page for those who may see the dashboard."""

        async def shown(request: Request) -> Response:
            visitor = self._visitors.visitor(request)
            request.scope[KEY_ID] = LOCAL if visitor.key is None else visitor.key.key_id  # for the access log
            answer = await page(request, visitor)
            if visitor.is_new:
                set_cookie(request, answer, visitor.cookie)
            return answer

        return self._framed(shown)

    def _framed(self, page: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def framed(request: Request) -> Response:
            try:
                answer = await page(request)
            except SignInError:
                answer = RedirectResponse("/login", 303)
            except Exception as error:
                refusal = refusal_of(error)
                if refusal is None:
                    raise
                answer = _response("refusal", refusal.status, refusal=refusal)
            answer.headers.update(HEADERS)
            return answer

        return framed

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            raise RefusedError(404, "not_found", "there is nothing here.")
        headers = HEADERS | {"cache-control": "public, max-age=31536000, immutable"}
        return Response(_asset_bytes(name), media_type=ASSETS[name], headers=headers)

    async def _numbers(self, request: Request) -> Response:
        try:
            self._access.check(request.scope, "read")
        except RefusedError as refusal:
            try:
                self._visitors.visitor(request)
            except SignInError:
                raise refusal from None
        headers = {name: HEADERS[name] for name in ("x-content-type-options", "cache-control")}
        return Response(ENCODER.encode(await self.document()), media_type="application/json", headers=headers)

    async def _html(self, visitor: Visitor, name: str, status: int = 200, **values: Any) -> Response:
        token, can_leave = self._visitors.sessions.token(visitor.cookie), visitor.key is not None
        # Several milliseconds, in which others are served.
        return await asyncio.to_thread(_response, name, status, token=token, can_leave=can_leave, **values)


@cache
def _asset_bytes(name: str) -> bytes:
    return (files("rankpolicy.service.dashboard") / "assets" / name).read_bytes()


@cache
def _asset_url(name: str) -> str:
    """Where a page finds an asset; another content has another address, so browsers may keep it."""
    return f"/assets/{name}?{sha256(_asset_bytes(name)).hexdigest()[:12]}"


def _check_fields(action: str, fields: dict[str, str]) -> None:
    if not fields.get("policy") or len(fields["policy"]) > LONGEST:
        raise RefusedError(422, "invalid", "The name of a policy is missing.")
    if action == "promote" and not (fields.get("version", "").isascii() and fields.get("version", "").isdigit()):
        raise RefusedError(422, "invalid", "The number of a version is missing.")
    if len(fields.get("version", "")) > 9:
        raise RefusedError(422, "invalid", "There is no such version.")


def _share(percent: str) -> float:
    try:
        value = float(percent) / 100
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise RefusedError(422, "invalid", "The share must be a number above 0, at most 100.")
    return value


def _response(name: str, status: int = 200, *, can_leave: bool = False, token: str = "", **values: Any) -> Response:
    """The page of a template."""
    template = f"service/dashboard/templates/{name}.html.jinja"
    page = rendered(template, can_leave=can_leave, token=token, asset_url=_asset_url, **values)
    # Half of a surrogate pair cannot be sent, and U+0000 is not allowed in HTML.
    content = page.replace("\0", "�").encode("utf-8", "replace")
    return Response(content, status, media_type="text/html; charset=utf-8")
