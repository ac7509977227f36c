"""The page of the HTTP interface has every path, message and field, and the scopes that a running service wants."""

import doctest

import pytest
from starlette.testclient import TestClient

from docs.building import http_interface
from rankpolicy.service import RankingService, ServiceConfig, SqliteStore
from rankpolicy.service.domain.keys import SCOPES, new_key
from rankpolicy.service.http.application import Application
from rankpolicy.service.http.openapi import openapi

PAGE = http_interface.http_page()


@pytest.fixture(scope="module")
def keys_and_service(tmp_path_factory):
    file = tmp_path_factory.mktemp("service") / "service.db"
    store = SqliteStore(file)
    keys = {}
    for scope in SCOPES:
        keys[scope], stored = new_key([scope])
        store.add_key(stored, now=1)
    store.close()
    service = RankingService(ServiceConfig(db=str(file), list_seconds=60, policies={"search": {"kind": "uniform"}}))
    with TestClient(Application(service), base_url="http://127.0.0.1", client=("127.0.0.1", 5)) as http:
        yield keys, http


def status(http, method, path, key=None):
    place = path.replace("{ranking_id}", "none").replace("{policy}", "search")
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return http.request(method, place, headers=headers, json={} if method == "post" else None).status_code


@pytest.mark.parametrize(("method", "path"), list(http_interface.SCOPES))
def test_scopes_are_what_the_service_wants(method, path, keys_and_service):
    keys, http = keys_and_service
    wanted = http_interface.SCOPES[method, path]
    assert (status(http, method, path) == 401) == (wanted is not None)
    for scope, key in keys.items():
        assert (status(http, method, path, key) == 403) == (wanted not in (None, scope)), scope


def test_every_path_message_and_field_is_described():
    document = openapi()
    described = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert described == set(http_interface.SCOPES)
    for method, path in described:
        assert f"\n### {method.upper()} {path}\n" in PAGE
    for name, schema in document["components"]["schemas"].items():
        section = PAGE.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
        rows = dict(line.split(" | ", 1) for line in section.splitlines() if line.startswith("| `"))
        assert {f"| `{field}`" for field in schema["properties"]} == set(rows), name
        assert all(row.count(" | ") == 1 and not row.endswith(" |  |") for row in rows.values()), name


def test_examples_of_the_generator():
    assert doctest.testmod(http_interface).failed == 0
