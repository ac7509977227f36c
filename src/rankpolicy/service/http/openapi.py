"""The interface described in OpenAPI 3.1, from the declarations of the messages."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from rankpolicy.service.domain.messages import (
    AuditLine,
    Evaluate,
    EventsAnswer,
    NewEvent,
    Problem,
    Promote,
    RankAnswer,
    RankRequest,
    Rollback,
)
from rankpolicy.service.http.rerank import RerankAnswer, RerankRequest
from rankpolicy.service.http.ubi import UbiEvent, UbiQuery
from rankpolicy.version import __version__

_MESSAGES = (
    RankRequest,
    RankAnswer,
    NewEvent,
    EventsAnswer,
    Promote,
    Rollback,
    Evaluate,
    AuditLine,
    UbiQuery,
    UbiEvent,
    RerankRequest,
    RerankAnswer,
    Problem,
)


@cache
def openapi() -> dict[str, Any]:
    """The document."""
    _, components = msgspec.json.schema_components(_MESSAGES, ref_template="#/components/schemas/{name}")
    events = _one_or_many("NewEvent")
    paths = {
        "/v1/rank": {"post": _posted("Order items", "rank", _named("RankRequest"), "RankAnswer")},
        "/v1/events": {"post": _posted("Report what users did", "events", events, "EventsAnswer")},
        "/v1/rankings/{ranking_id}": {"get": _read("A list that was shown", "ranking_id")},
        "/v1/policies/{policy}/promote": {
            "post": _posted(
                "Serve a version to all users or a share of them", "promote", _named("Promote"), "AuditLine", "policy"
            )
        },
        "/v1/policies/{policy}/rollback": {
            "post": _posted("Return to the version before", "rollback", _named("Rollback"), "AuditLine", "policy")
        },
        "/v1/models": {"post": _uploaded()},
        "/v1/evaluate": {"post": _posted("Off-policy value of a candidate", "evaluate", _named("Evaluate"), None)},
        "/v1/audit": {"get": _read("Who changed what, the last change first")},
        "/v1/ubi/queries": {"post": _posted("Queries of UBI 1.3", "ubi_queries", _one_or_many("UbiQuery"), None)},
        "/v1/ubi/events": {"post": _posted("Events of UBI 1.3", "ubi_events", _one_or_many("UbiEvent"), None)},
        "/v1/rerank": {
            "post": _posted("Order documents, as RAG tools ask", "rerank", _named("RerankRequest"), "RerankAnswer")
        },
        "/v1/policies": {"get": _read("Policies, their versions and the hashes of their states")},
        "/v1/statistics": {"get": _read("What the dashboard shows: rates, clicks by position, exposure, propensities")},
        "/metrics": {"get": _read("Counters in the text format of Prometheus")},
        "/healthz": {"get": _read("Whether the process runs")},
        "/readyz": {"get": _read("Whether lists and events can be stored")},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "rankpolicy", "version": __version__},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}],
    }


def _named(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _one_or_many(name: str) -> dict[str, Any]:
    return {"anyOf": [_named(name), {"type": "array", "items": _named(name)}]}


def _uploaded() -> dict[str, Any]:
    document = _posted("Send the file of a ranker", "models", {}, None)
    content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return document | {"requestBody": {"required": True, "content": content}}


def _posted(summary: str, name: str, request: dict[str, Any], answer: str | None, *parameters: str) -> dict[str, Any]:
    schema = {"type": "object"} if answer is None else _named(answer)
    return {
        "summary": summary,
        "operationId": name,
        "parameters": _in_path(parameters),
        "requestBody": {"required": True, "content": _content(request)},
        "responses": {
            "200": {"description": "On disk.", "content": _content(schema)},
            "409": {"description": "An id was used before, with another content."},
            "4XX": {"description": "Refused.", "content": _content(_named("Problem"))},
            "503": {"description": "Not stored; send it again later.", "content": _content(_named("Problem"))},
        },
    }


def _read(summary: str, *parameters: str) -> dict[str, Any]:
    return {"summary": summary, "parameters": _in_path(parameters), "responses": {"200": {"description": "Found."}}}


def _in_path(names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
