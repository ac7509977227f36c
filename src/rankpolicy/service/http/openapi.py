"""The interface described in OpenAPI 3.1, from the declarations of the messages."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from rankpolicy.service.messages import EventIn, EventsAnswer, Problem, RankAnswer, RankRequest
from rankpolicy.version import __version__

_MESSAGES = (RankRequest, RankAnswer, EventIn, EventsAnswer, Problem)


@cache
def openapi() -> dict[str, Any]:
    """The document."""
    _, components = msgspec.json.schema_components(_MESSAGES, ref_template="#/components/schemas/{name}")
    events = {"anyOf": [_named("EventIn"), {"type": "array", "items": _named("EventIn")}]}
    paths = {
        "/v1/rank": {"post": _posted("Order items", "rank", _named("RankRequest"), "RankAnswer")},
        "/v1/events": {"post": _posted("Report what users did", "events", events, "EventsAnswer")},
        "/v1/rankings/{ranking_id}": {
            "get": _read("A list that was shown", "ranking_id"),
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
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def _named(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _posted(summary: str, name: str, request: dict[str, Any], answer: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "operationId": name,
        "requestBody": {"required": True, "content": _content(request)},
        "responses": {
            "200": {"description": "On disk.", "content": _content(_named(answer))},
            "409": {"description": "An id was used before, with another content."},
            "4XX": {"description": "Refused.", "content": _content(_named("Problem"))},
            "503": {"description": "Not stored; send it again later.", "content": _content(_named("Problem"))},
        },
    }


def _read(summary: str, *parameters: str) -> dict[str, Any]:
    named = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in parameters]
    return {"summary": summary, "parameters": named, "responses": {"200": {"description": "Found."}}}
