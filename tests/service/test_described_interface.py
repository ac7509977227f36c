"""Requests made from the OpenAPI document, right and wrong ones: never a 5xx, and answers are as described.

``RANKPOLICY_REQUESTS=200000 pytest tests/service/test_described_interface.py`` sends about so many.
"""

from __future__ import annotations

import json
import os
import resource

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.testclient import TestClient

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.http import Application
from rankpolicy.service.http.openapi import openapi
from rankpolicy.service.ranking_service import RankingService

REQUESTS = int(os.environ.get("RANKPOLICY_REQUESTS", "300"))
SCHEMA = schemathesis.openapi.from_dict(openapi())
OPERATIONS = [(path, method) for path, methods in openapi()["paths"].items() for method in methods]
MODES = {"right": schemathesis.GenerationMode.POSITIVE, "wrong": schemathesis.GenerationMode.NEGATIVE}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    db = tmp_path_factory.mktemp("described") / "service.db"
    policies = {"default": {"kind": "bandit", "bandit": "epsilon-greedy"}, "own": {"kind": "given"}}
    reports: list[str] = []
    service = RankingService(ServiceConfig(db=str(db), window_seconds=0.2, list_seconds=60, policies=policies))
    application = Application(service, report=reports.append)
    with TestClient(application, base_url="http://127.0.0.1", client=("127.0.0.1", 5)) as http:
        yield http
        assert service.policies.named(None).state_hash()[0] >= 0
    assert reports == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=[path for path, _ in OPERATIONS])
def test_never_a_failure(served, path, method, mode):
    try:
        cases = SCHEMA[path][method.upper()].as_strategy(generation_mode=MODES[mode])
    except schemathesis.errors.SchemathesisError as error:
        pytest.skip(f"nothing to generate: {error}")
    posts = method == "post"

    @given(case=cases)
    @settings(
        max_examples=max(5, REQUESTS // (4 if posts else 40)),
        deadline=None,
        derandomize=REQUESTS <= 1_000,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    def sent(case):
        answer = served.request(**_request_of(case))
        assert answer.status_code < 500, answer.text
        if path.startswith("/v1") and answer.status_code >= 400:
            body = answer.json()
            assert body.keys() & {"error", "rejected"}, body
        if posts and mode == "right" and answer.status_code == 200 and path == "/v1/rank":
            assert len(answer.json()["items"]) <= 2_000

    try:
        sent()
    except Exception as error:
        if type(error).__name__ == "Unsatisfiable":
            pytest.skip("there is nothing that could be wrong about it")
        raise


def _request_of(case) -> dict:
    kwargs = case.as_transport_kwargs(base_url="http://127.0.0.1")
    allowed = {"method", "url", "params", "headers", "json", "data", "content"}
    made = {name: value for name, value in kwargs.items() if name in allowed and value is not None}
    if isinstance(made.get("data"), bytes | str):
        made["content"] = made.pop("data")
    made["headers"] = {
        name: value.encode("utf-8", "replace") if isinstance(value, str) else value
        for name, value in dict(made.get("headers", {})).items()
    }
    return made


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(body=DOCUMENTS)
@settings(max_examples=max(50, REQUESTS // 10), deadline=None, suppress_health_check=list(HealthCheck), database=None)
@pytest.mark.parametrize("path", ["/v1/rank", "/v1/events"])
def test_any_document_is_understood_or_refused(served, path, body):
    content = json.dumps(body).encode("utf-8", "surrogatepass")  # also NaN and lone surrogates
    answer = served.post(path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 400, 413, 422), answer.text


@pytest.mark.parametrize("path", ["/v1/rank", "/v1/events"])
@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"query": "q", "query": "r", "items": [{"id": "a"}], "items": []}',
        b'{"query": "q", "items": [{"id": "a", "features": [NaN]}]}',
        b'{"query": "q", "items": [{"id": "a", "features": [1e400]}]}',
        b'{"query": "\\ud800", "items": []}',
        b'"' + b"x" * (1 << 20) + b'"',
        b"\xff\xfe\x00",
        b"",
    ],
)
def test_oversized_nested_and_malformed_bodies_are_4xx(served, path, content):
    answer = served.post(path, content=content, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500 or answer.status_code == 200, answer.text
    if b'"query": "r"' not in content:
        assert answer.status_code >= 400


def test_memory_stays_flat(served):
    body = {"query": "q", "items": [{"id": f"i{number}"} for number in range(50)]}

    def largest_after(requests: int) -> int:
        for _ in range(requests):
            assert served.post("/v1/rank", json=body).status_code == 200
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = largest_after(50)
    assert largest_after(max(100, REQUESTS // 20)) - before < 64_000  # kilobytes
