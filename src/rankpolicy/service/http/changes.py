"""Pages that change what is served, and the audit log."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rankpolicy.service.domain.deployments import Change
from rankpolicy.service.domain.messages import AuditLine, Evaluate, Promote, Rollback
from rankpolicy.service.http.access import Access
from rankpolicy.service.http.bodies import RefusedError, decoded, json_response, read_body
from rankpolicy.service.learning.promotion import (
    MOST_MODEL_BYTES,
    checked_candidate,
    promote_model,
    promote_version,
    rollback,
)
from rankpolicy.service.log.store import Store
from rankpolicy.service.ranking_service import RankingService
from rankpolicy.types import RankPolicyError, check_name

_PROMOTE = msgspec.json.Decoder(Promote)
_ROLLBACK = msgspec.json.Decoder(Rollback)
_EVALUATE = msgspec.json.Decoder(Evaluate)
_MOST_LINES = 1_000
Limit = Annotated[int, Meta(ge=1, le=_MOST_LINES)]


class DeploymentPages:
    """Promote, rollback, models, evaluate and the audit log."""

    def __init__(self, service: RankingService, access: Access) -> None:
        self._service, self._access = service, access

    def routes(self) -> list[Route]:
        """Where they are."""
        return [
            Route("/v1/policies/{policy}/promote", self._promote, methods=["POST"]),
            Route("/v1/policies/{policy}/rollback", self._roll_back, methods=["POST"]),
            Route("/v1/models", self._save_model, methods=["POST"]),
            Route("/v1/evaluate", self._evaluate, methods=["POST"]),
            Route("/v1/audit", self._audit),
        ]

    async def _promote(self, request: Request) -> Response:
        author = self._access.check(request.scope, "promote")
        name = served_policy(self._service, request.path_params["policy"])
        message = decoded(_PROMOTE, await read_body(request.scope, request.receive))
        if (message.version is None) == (message.model_sha256 is None):
            raise RankPolicyError("name either version or model_sha256, one of them.")

        def change(store: Store, now: int) -> Change:
            options: dict[str, Any] = {"share": message.share, "author": author, "detail": message.detail, "now": now}
            if message.version is not None:
                return promote_version(store, name, message.version, **options)
            content = store.model(message.model_sha256 or "")
            if content is None:
                raise _no_model()
            settings = {"order_by": message.order_by, "temperature": message.temperature}
            chosen_settings = {key: value for key, value in settings.items() if value is not None}
            return promote_model(store, name, content, settings=chosen_settings or None, **options)

        return json_response(audit_line(await self._service.changed(change)))

    async def _roll_back(self, request: Request) -> Response:
        author = self._access.check(request.scope, "promote")
        name = served_policy(self._service, request.path_params["policy"])
        message = decoded(_ROLLBACK, await read_body(request.scope, request.receive))
        change = await self._service.changed(
            lambda store, now: rollback(store, name, author=author, detail=message.detail, now=now)
        )
        return json_response(audit_line(change))

    async def _save_model(self, request: Request) -> Response:
        self._access.check(request.scope, "promote")
        kind = "application/octet-stream"
        content = await read_body(request.scope, request.receive, kind=kind, most=MOST_MODEL_BYTES)

        def save(store: Store, now: int) -> str:
            checked_candidate(content, {})
            return store.save_model(content, now=now)

        return json_response({"model_sha256": await asyncio.to_thread(self._service.with_store, save)})

    async def _evaluate(self, request: Request) -> Response:
        author = self._access.check(request.scope, "promote")
        message = decoded(_EVALUATE, await read_body(request.scope, request.receive))
        if (message.policy is None) == (message.model_sha256 is None):
            raise RankPolicyError("name one candidate: a model_sha256, or a policy and perhaps its version.")
        policies = self._service.policies.names
        for name in (message.policy, message.against):
            check_name("policy", name, policies)
        sha256 = message.model_sha256
        if sha256 is not None and await self._service.read(lambda store: store.model(sha256)) is None:
            raise _no_model()
        return json_response(await self._service.work("evaluate", msgspec.to_builtins(message), author=author))

    async def _audit(self, request: Request) -> Response:
        self._access.check(request.scope, "read")
        limit = decoded(msgspec.json.Decoder(Limit), request.query_params.get("limit", "100").encode())
        return json_response({"audit": await audit_lines(self._service, limit=limit)})


def _no_model() -> RefusedError:
    return RefusedError(404, "not_found", "there is no model with this hash: POST its file to /v1/models.")


async def audit_lines(service: RankingService, *, limit: int) -> list[AuditLine]:
    """Who changed what, the last change first."""
    changes, key_changes = await service.read(lambda store: (store.changes(), store.audit_lines()))
    lines = [audit_line(change) for change in changes]
    of_no_policy: dict[str, Any] = {"policy": None, "version": None, "share": None}
    lines += [
        AuditLine(at=_time(stamp), key=detail.split(":")[0], action=action, detail=detail, **of_no_policy)
        for stamp, action, detail in key_changes
    ]
    lines.reverse()  # of changes at one moment the last comes first
    lines.sort(key=lambda line: line.at, reverse=True)
    return lines[:limit]


def audit_line(change: Change) -> AuditLine:
    """A change as the interface shows it."""
    return AuditLine(
        at=_time(change.stamp),
        key=change.author,
        action=change.action,
        policy=change.policy,
        version=change.version,
        share=change.share,
        detail=change.detail,
    )


def _time(stamp: int) -> str:
    return datetime.fromtimestamp(stamp / 1e6, UTC).isoformat(timespec="microseconds")


def served_policy(service: RankingService, name: str) -> str:
    """The name of a policy that is served; any other is refused."""
    if name not in service.policies.names:
        raise RefusedError(404, "not_found", "there is no policy with this name; GET /v1/policies lists them.")
    return name
