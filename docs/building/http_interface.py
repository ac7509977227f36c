"""Reference page of the HTTP interface, from the OpenAPI document that the service gives out itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from docs.building.docstrings import inline
from rankpolicy.service.http.openapi import openapi

# The scope that a key must have; a test asks a running service whether that is true.
SCOPES: Mapping[tuple[str, str], str | None] = {
    ("post", "/v1/rank"): "rank",
    ("post", "/v1/events"): "events",
    ("get", "/v1/rankings/{ranking_id}"): "read",
    ("post", "/v1/policies/{policy}/promote"): "promote",
    ("post", "/v1/policies/{policy}/rollback"): "promote",
    ("post", "/v1/models"): "promote",
    ("post", "/v1/evaluate"): "promote",
    ("get", "/v1/audit"): "read",
    ("post", "/v1/ubi/queries"): "rank",
    ("post", "/v1/ubi/events"): "events",
    ("post", "/v1/rerank"): "rank",
    ("post", "/personalizer/v1.0/rank"): "rank",
    ("post", "/personalizer/v1.0/events/{event_id}/reward"): "events",
    ("post", "/personalizer/v1.0/events/{event_id}/activate"): "events",
    ("post", "/personalizer/v1.1-preview.1/multislot/rank"): "rank",
    ("post", "/personalizer/v1.1-preview.1/multislot/events/{event_id}/reward"): "events",
    ("post", "/personalizer/v1.1-preview.1/multislot/events/{event_id}/activate"): "events",
    ("get", "/v1/policies"): "read",
    ("get", "/v1/statistics"): "read",
    ("get", "/metrics"): "read",
    ("get", "/healthz"): None,
    ("get", "/readyz"): None,
}
_INTRODUCTION = """# HTTP interface

Generated from the description that a running service gives at `/openapi.json` (OpenAPI 3.1), which other tools can read too.
Requests and answers are JSON
(`content-type: application/json`). Once a service has keys, every request names one: `authorization: Bearer KEY`; the table says
which scope the key must have
([keys](deployment.md#keys)).

```text
curl -s http://127.0.0.1:8080/v1/rank -H 'content-type: application/json' \\
  -d '{"query": "red shoes", "items": [{"id": "a"}, {"id": "b"}], "cutoff": 2, "ranking_id": "list-1"}'
curl -s http://127.0.0.1:8080/v1/events -H 'content-type: application/json' \\
  -d '{"event_id": "click-1", "ranking_id": "list-1", "item": "b"}'
```

In Python [`rp.Client`](#rankpolicy.service.Client) sends these requests, with ids, and repeats them where that is needed. `/v1/ubi/`
takes the documents of User
Behavior Insights (UBI 1.3), which OpenSearch and others write; `/v1/rerank` is also found at `/v2/rerank`, where newer clients of
Cohere look for it."""
_STATUS = """## Status codes

| status | meaning | send it again? |
|---|---|---|
| 200 | done, and on disk | |
| 400, 413, 415, 422 | the request cannot be understood or breaks a limit; `message` says what must hold | no |
| 401, 403 | no valid key, or one without the scope | no |
| 404 | no such list, policy or path | no |
| 409 | the id was used before, with another content | no |
| 503 | nothing was stored | yes, later, with the same ids |

Ids make it safe to send a request again: the same `ranking_id` or `event_id` with the same content is stored once and answered
as before. Every refusal has the
fields of [Problem](#http-Problem)."""


def http_page() -> str:
    """The page of all paths and messages, as Markdown."""
    document = openapi()
    rows = [
        f"| [`{method.upper()} {path}`](#{_anchor(method, path)}) | {inline(described['summary'])} | {_scope(method, path)} |"
        for method, path, described in _operations(document)
    ]
    lines = [_INTRODUCTION, "| request | what it does | scope |\n|---|---|---|\n" + "\n".join(rows), _STATUS]
    lines.append("## Requests")
    for method, path, described in _operations(document):
        lines += _section(method, path, described)
    lines.append("## Messages")
    asked = _named_in([described.get("requestBody", {}) for _, _, described in _operations(document)], document)
    for name, schema in document["components"]["schemas"].items():
        lines += _message(name, schema, is_asked=name in asked)
    return "\n\n".join(lines) + "\n"


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            yield method, path, described


def _anchor(method: str, path: str) -> str:
    return f"http-{method}{re.sub(r'[^a-z]+', '-', path)}".rstrip("-")


def _scope(method: str, path: str) -> str:
    scope = SCOPES[method, path]
    return "no key needed" if scope is None else f"`{scope}`"


def _section(method: str, path: str, described: Mapping[str, Any]) -> Iterator[str]:
    yield f"({_anchor(method, path)})=\n### {method.upper()} {path}"
    yield f"{inline(described['summary'])}."
    if body := described.get("requestBody"):
        kind, content = next(iter(body["content"].items()))
        yield f"Body: {_kind(content['schema'])}" + ("" if kind == "application/json" else f", as `{kind}`") + "."
    for status, answer in described["responses"].items():
        if answer_content := answer.get("content"):
            schema = answer_content["application/json"]["schema"]
            if "$ref" in schema and status in ("200", "201"):
                yield f"Answer: {_kind(schema)}."


def _named_in(part: Any, document: Mapping[str, Any]) -> set[str]:
    """The messages that a part of the document names, and those that they name."""
    if isinstance(part, list):
        return set().union(*(_named_in(entry, document) for entry in part))
    if not isinstance(part, Mapping):
        return set()
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return {name} | _named_in(document["components"]["schemas"][name], document)
    return _named_in(list(part.values()), document)


def _message(name: str, schema: Mapping[str, Any], *, is_asked: bool) -> Iterator[str]:
    what, entries = _described(schema.get("description", ""))
    yield f"(http-{name})=\n### {name}"
    yield inline(what)
    required = schema.get("required", []) if is_asked else []
    rows = []
    for field, kind in schema["properties"].items():
        need = "Required. " if field in required else _default(kind)
        meaning = re.sub(r"\bNone\b", "null", entries.get(field, ""))
        rows.append(f"| `{field}` | {_kind(kind)} | {need}{inline(meaning)} |")
    yield "| field | type | meaning |\n|---|---|---|\n" + "\n".join(rows)


def _default(kind: Mapping[str, Any]) -> str:
    return "" if kind.get("default") is None else f"Default `{json.dumps(kind['default'])}`. "


def _described(description: str) -> tuple[str, dict[str, str]]:
    """The first paragraph of a docstring, and what its parameter section says about each field."""
    what, _, parameters = description.partition("Parameters\n")
    entries: dict[str, str] = {}
    for head, body in re.findall(r"^ {4}(\w[\w, ]*)\n((?: {8}.*\n?)+)", parameters, re.M):
        for field in head.split(", "):
            entries[field] = " ".join(body.split())
    return " ".join(what.split()), entries


def _kind(schema: Mapping[str, Any]) -> str:
    """The type of a value with its limits, in words.

    >>> _kind({"anyOf": [{"type": "string", "maxLength": 512}, {"type": "null"}]})
    'text of up to 512 characters, or null'
    >>> _kind({"type": "array", "items": {"type": "number"}, "maxItems": 3})
    'list of up to 3 number'
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#http-{name})"
    if "anyOf" in schema:
        return ", or ".join(_kind(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        most = f" of up to {schema['maxItems']:,}" if "maxItems" in schema else ""
        return f"list{most or ' of'} {_kind(schema['items'])}"
    if kind == "object":
        most = f" of up to {schema['maxProperties']:,} entries" if "maxProperties" in schema else ""
        values = schema.get("additionalProperties")
        return f"object{most}" + (f" ({_kind(values)})" if isinstance(values, Mapping) else "")
    if kind == "string":
        if schema.get("format") == "binary":
            return "the bytes of a file"
        return f"text of up to {schema['maxLength']:,} characters" if "maxLength" in schema else "text"
    names = {"integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}
    return names[str(kind)] + _range(schema)


def _range(schema: Mapping[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    limits = [f"{word} {schema[limit]:,}" for limit, word in words.items() if limit in schema]
    return f" {' and '.join(limits)}" if limits else ""
