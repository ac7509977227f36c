"""What is asked rarely: lists, policies, health, metrics, the description of the interface."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route, Router

from rankpolicy.service.domain.marks import rewards_in
from rankpolicy.service.domain.messages import LONGEST
from rankpolicy.service.http.access import Access
from rankpolicy.service.http.bodies import RefusedError, Scope, json_response
from rankpolicy.service.http.changes import DeploymentPages
from rankpolicy.service.http.openapi import openapi
from rankpolicy.service.http.personalizer import personalizer_routes
from rankpolicy.service.http.rerank import rerank_routes
from rankpolicy.service.http.ubi import ubi_routes
from rankpolicy.service.learning.live import LivePolicies, LivePolicy
from rankpolicy.service.log.store import Store
from rankpolicy.service.ranking_service import RankingService


def routed_pages(
    service: RankingService, access: Access, metrics_text: Callable[[], Awaitable[str]], pages: Sequence[BaseRoute] = ()
) -> Router:
    """Everything but /v1/rank and /v1/events. What is refused is raised: ``Application`` answers it."""

    async def ranking(request: Request) -> Response:
        access.check(request.scope, "read")
        return json_response(await service.read(partial(_logged_list, request.path_params["ranking_id"])))

    async def policies(request: Request) -> Response:
        access.check(request.scope, "read")
        return json_response({"policies": await asyncio.to_thread(served_policies, service.policies)})

    async def health(request: Request) -> Response:
        return json_response({"status": "ok"})

    async def readiness(request: Request) -> Response:
        failure = service.failure
        return json_response(
            {"status": "ready"} if failure is None else {"status": "unavailable"}, 200 if failure is None else 503
        )

    async def numbers(request: Request) -> Response:
        access.check(request.scope, "read")
        return PlainTextResponse(await metrics_text(), media_type="text/plain; version=0.0.4")

    async def description(request: Request) -> Response:
        return json_response(openapi())

    return Router(
        [
            Route("/v1/rankings/{ranking_id}", ranking),
            Route("/v1/policies", policies),
            *DeploymentPages(service, access).routes(),
            *ubi_routes(service, access),
            *rerank_routes(service, access),
            *personalizer_routes(service, access),
            Route("/metrics", numbers),
            Route("/healthz", health),
            Route("/readyz", readiness),
            Route("/openapi.json", description),
            *pages,
        ]
    )


def _logged_list(ranking_id: str, store: Store) -> dict[str, Any]:
    logged = store.ranking(ranking_id) if len(ranking_id) <= LONGEST else None
    if logged is None:
        raise RefusedError(404, "not_found", "there is no list with this ranking_id.")
    clicks, is_learned = store.clicks_of(logged)
    rule = logged.shown.rewards
    if rule is not None:
        rewards = rewards_in(clicks, default=rule.default)
        by_item = None if rewards is None else dict(zip(logged.shown.items, rewards, strict=True))
        events: dict[str, Any] = {"activated": rewards is not None, "rewards": by_item}
    else:
        events = {"clicked": [item for item, mark in zip(logged.shown.items, clicks, strict=True) if mark]}
    times = {"stored_us": logged.stamp, "window_ends_us": logged.deadline}
    return {"shown": logged.shown, **events, "learned": is_learned} | times


class LiveVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a policy and what it has learned."""

    version: int
    kind: str
    settings: str
    model_sha256: str | None
    last_lesson: int  # the row of the log up to which it has learned
    state_sha256: str | None  # None where it does not learn
    report: dict[str, Any]
    since: float  # seconds since 1970


class SharedVersion(LiveVersion, frozen=True, kw_only=True):
    """A version that is served or may be returned to."""

    share: float  # of the traffic of its policy


class DescribedPolicy(LiveVersion, frozen=True, kw_only=True):
    """A policy: the version that serves, and all versions that are served or may be returned to."""

    name: str
    versions: list[SharedVersion]


def served_policies(policies: LivePolicies) -> list[DescribedPolicy]:
    """All policies. Not for the event loop: the hash of a state takes as long as the state is large."""
    described = []
    for name in policies.names:
        deployment = policies.routing.deployed[name]
        shares, since = deployment.shares(), deployment.since / 1e6
        lives = [policies.by_version[policies.routing.versions[name, number].key] for number in deployment.versions]
        versions = [
            SharedVersion(since=since, share=shares.get(live.version.number, 0.0), **_state(live)) for live in lives
        ]
        described.append(DescribedPolicy(name=name, since=since, versions=versions, **_state(policies.by_name[name])))
    return described


def _state(live: LivePolicy) -> dict[str, Any]:
    last_lesson, state_sha256, report = live.described()
    return {
        "version": live.version.number,
        "kind": live.version.kind,
        "settings": live.version.settings,
        "model_sha256": live.policy.model_sha256,
        "last_lesson": last_lesson,
        "state_sha256": state_sha256 if live.policy.learns else None,
        "report": report,
    }


def refusal_by(router: Router, scope: Scope, error: HTTPException) -> RefusedError:
    """What is answered where no route has the path, or none has it for the method."""
    if error.status_code == 404:
        return RefusedError(404, "not_found", "there is nothing here; see /openapi.json.")
    # Not from the error, which knows the first route of a path only.
    routes: list[Any] = [route for route in router.routes if route.matches(scope)[0] is not Match.NONE]
    allowed = ", ".join(sorted({method for route in routes for method in route.methods}))
    reason = f"{scope['method']} is not possible here; see /openapi.json."
    return RefusedError(405, "method_not_allowed", reason, (b"allow", allowed.encode()))
