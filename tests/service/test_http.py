"""The interface: what is answered, what is refused, and that bad input never ends in a 500."""

import json
import os
import random
import resource
from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.http import Application
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.ranking_service import RankingService
from tests.service.parts import until_refused
from tests.waits import wait_until

POLICIES = {
    "default": {"kind": "bandit", "bandit": "epsilon-greedy"},
    "own": {"kind": "given"},
    "any": {"kind": "uniform"},
}
ITEMS = [{"id": name} for name in "abcd"]
RANK = {"query": "shoes", "items": ITEMS, "cutoff": 3}


def client_of(path, *, client=("127.0.0.1", 5), reports=None, **settings):
    # A busy machine may take longer than the default for a list, which is not logged then.
    given = {"window_seconds": 0.05, "list_seconds": 60, "policies": POLICIES, "seed": 1} | settings
    service = RankingService(ServiceConfig(db=str(path), **given))
    application = Application(service, report=(reports if reports is not None else []).append)
    return TestClient(application, base_url="http://127.0.0.1", client=client)


@pytest.fixture
def reports():
    return []


@pytest.fixture
def http(tmp_path, reports):
    with client_of(tmp_path / "service.db", reports=reports) as made:
        yield made
    assert reports == []


def post(http, path, body, **more):
    return http.post(path, json=body, **more)


def test_a_list_a_click_and_what_is_known_about_them(http):
    shown = post(http, "/v1/rank", RANK).json()
    assert [item["position"] for item in shown["items"]] == [1, 2, 3]
    assert [item["propensity"] for item in shown["items"]] == pytest.approx([1 / 4, 1 / 3, 1 / 2])
    assert shown["list_log_propensity"] == pytest.approx(-3.1780538)  # log 1/24
    assert (shown["policy"], shown["policy_version"], shown["logged"]) == ("default", 1, True)
    first = shown["items"][0]["id"]
    event = {"event_id": "e1", "ranking_id": shown["ranking_id"], "item": first}
    nothing = {"accepted": 0, "duplicate": 0, "orphan": 0, "late": 0, "rejected": []}
    assert post(http, "/v1/events", event).json() == nothing | {"accepted": 1}
    assert post(http, "/v1/events", [event, event]).json() == nothing | {"duplicate": 2}
    place = f"/v1/rankings/{shown['ranking_id']}"
    wait_until(lambda: http.get(place).json()["learned"])
    assert http.get(place).json()["clicked"] == [first]
    late = post(http, "/v1/events", event | {"event_id": "e2"})
    assert (late.status_code, late.json()["late"]) == (200, 1)


def test_the_same_ranking_id_is_answered_with_the_same_list(http):
    answers = [post(http, "/v1/rank", RANK | {"ranking_id": "mine", "policy": "any"}).json() for _ in range(3)]
    assert len({json.dumps(answer["items"]) for answer in answers}) == 1
    other = post(http, "/v1/rank", RANK | {"ranking_id": "mine", "policy": "any", "cutoff": 2})
    assert (other.status_code, other.json()["error"]) == (409, "conflict")


def test_conflicts_and_unknown_items_are_named(http):
    shown = post(http, "/v1/rank", RANK | {"policy": "own"}).json()
    event = {"event_id": "e1", "ranking_id": shown["ranking_id"], "item": "a"}
    post(http, "/v1/events", event)
    conflict = post(http, "/v1/events", event | {"item": "b"})
    assert conflict.status_code == 409
    assert conflict.json()["rejected"][0]["event_id"] == "e1"
    assert post(http, "/v1/events", event | {"event_id": "e2", "item": "d"}).status_code == 422  # past the cutoff
    mixed = post(http, "/v1/events", [event | {"item": "b"}, event | {"event_id": "e3"}])
    stored = mixed.json()["accepted"] + mixed.json()["late"]
    assert (mixed.status_code, stored, len(mixed.json()["rejected"])) == (200, 1, 1)
    assert post(http, "/v1/events", {"event_id": "e4", "ranking_id": "none", "item": "a"}).json()["orphan"] == 1
    assert post(http, "/v1/events", []).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "JSON"),
        (b"{", 400, "JSON"),
        (b'{"query": NaN}', 400, "JSON"),
        (b'{"query": "\xff"}', 400, "JSON"),
        (b"[" * 100_000, 422, ""),
        (b'{"context": {"a": ' + b"[" * 100_000 + b'}, "query": "q", "items": []}', 422, ""),
        (b'{"nobody": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422, ""),
        (b"null", 422, "null"),
        (b'{"query": "q"}', 422, "items"),
        (b'{"query": "", "items": []}', 422, "query"),
        (b'{"query": 7, "items": []}', 422, "query"),
        (b'{"query": "q", "items": [], "cutoff": 0}', 422, "cutoff"),
        (b'{"query": "q", "items": [], "cutoff": 1e3000}', 422, ""),
        (b'{"query": "q", "items": [], "unknown": 1}', 422, "unknown"),
        (b'{"query": "q", "items": [{"id": "a"}, {"id": "a"}]}', 422, "different ids"),
        (b'{"query": "q", "items": [{"id": "a\\u0000"}]}', 422, "U+0000"),
        (b'{"query": "q", "items": [{"id": "a", "features": {"x": 1e999}}]}', 422, "range"),
        (b'{"query": "q", "items": [], "policy": "../../etc/passwd"}', 422, "Unknown policy"),
        (b'{"query": "' + b"q" * 513 + b'", "items": []}', 422, "512"),
        (json.dumps({"query": "q", "items": [{"id": str(n)} for n in range(2001)]}).encode(), 422, "2000"),
        (b'{"query": "q", "items": []}' + b" " * (1 << 20), 413, "1048576"),
    ],
)
def test_bad_requests_are_refused_in_words(http, body, status, words):
    answer = http.post("/v1/rank", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in ({status} if words else {400, 422})
    assert set(answer.json()) == {"error", "message"}
    assert words in answer.json()["message"]


def test_wrong_paths_methods_and_types_are_refused(http):
    assert http.get("/v1/rank").status_code == 405
    assert http.get("/v1/rank").headers["allow"] == "POST"
    assert http.post("/v1/policies").status_code == 405
    assert http.get("/nothing").json()["error"] == "not_found"
    assert http.get("/v1/rankings/none").status_code == 404
    assert http.get("/v1/rankings/..%2f..%2fetc%2fpasswd").status_code == 404
    assert http.post("/v1/rank", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415


def test_an_empty_list_is_a_list(http):
    for policy in POLICIES:
        answer = post(http, "/v1/rank", {"query": "q", "items": [], "policy": policy})
        assert (answer.status_code, answer.json()["items"]) == (200, [])


def test_health_readiness_metrics_policies_and_description(http):
    post(http, "/v1/rank", RANK)
    assert http.get("/healthz").json() == {"status": "ok"}
    assert http.get("/readyz").json() == {"status": "ready"}
    text = http.get("/metrics").text
    assert 'rankpolicy_requests_total{path="/v1/rank",status="200"} 1' in text
    assert "rankpolicy_ready 1" in text
    policies = http.get("/v1/policies").json()["policies"]
    assert [policy["kind"] for policy in policies] == ["bandit", "given", "uniform"]
    described = http.get("/openapi.json").json()
    assert "RankRequest" in described["components"]["schemas"]
    assert set(described["paths"]) >= {"/v1/rank", "/v1/events", "/v1/policies"}


def test_without_keys_only_this_machine_is_served(tmp_path):
    with client_of(tmp_path / "service.db", client=("10.0.0.7", 5)) as http:
        assert post(http, "/v1/rank", RANK).status_code == 403
        assert http.get("/v1/policies").status_code == 403
        assert http.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"x-forwarded-for": "10.0.0.7"}, {"forwarded": "for=10.0.0.7"}]
)
def test_another_name_or_a_proxy_is_not_this_machine(http, headers):
    assert post(http, "/v1/rank", RANK, headers=headers).status_code == 403


def test_keys_and_scopes(tmp_path, capfd):
    path = tmp_path / "service.db"
    store = SqliteStore(path)
    key, stored = new_key(["rank"])
    reader, stored_reader = new_key(["read", "events"])
    store.add_key(stored, now=1)
    store.add_key(stored_reader, now=2)
    store.close()
    with client_of(path) as http:

        def status(given, call=post, where="/v1/rank", body=RANK):
            headers = {} if given is None else {"authorization": given}
            answer = call(http, where, body, headers=headers) if body is not None else http.get(where, headers=headers)
            return answer.status_code

        assert status(f"Bearer {key}") == 200
        assert status(None) == 401
        assert status("Bearer ") == 401
        assert status(f"Basic {key}") == 401
        assert status(f"Bearer {key[:-1]}") == 401
        assert status(f"Bearer {key}é".encode()) == 401
        assert status(f"Bearer {reader}") == 403
        assert status(f"Bearer {key}", where="/v1/policies", body=None) == 403
        assert status(f"Bearer {reader}", where="/v1/policies", body=None) == 200
        assert status(f"Bearer {key}", where="/v1/events", body=[]) == 403
        assert status(None, where="/metrics", body=None) == 401
        assert status(None, where="/healthz", body=None) == 200
        other = SqliteStore(path, role="keys")
        assert other.revoke_key(stored.key_id, now=3)
        assert not other.revoke_key(stored.key_id, now=4)
        other.close()
        wait_until(lambda: status(f"Bearer {key}") == 401)
    said = capfd.readouterr()
    for part in tmp_path.iterdir():
        assert key.encode() not in part.read_bytes()
        assert key.rpartition("_")[2].encode() not in part.read_bytes()
    assert key not in said.out + said.err


@contextmanager
def full_disk_of_a_process(service):
    """No byte more for the files of the process that writes."""
    process, size = service._writer._process.pid, os.path.getsize(f"{service._store.path}-wal")
    before = resource.prlimit(process, resource.RLIMIT_FSIZE, (size, -1))
    yield "nothing was stored"
    resource.prlimit(process, resource.RLIMIT_FSIZE, before)


def test_a_full_disk_refuses_events_goes_on_ranking_and_recovers(tmp_path):
    config = ServiceConfig(db=str(tmp_path / "service.db"), policies=POLICIES, window_seconds=60, list_seconds=60)
    service = RankingService(config)
    with TestClient(Application(service), base_url="http://127.0.0.1", client=("127.0.0.1", 5)) as http:
        shown = post(http, "/v1/rank", RANK | {"policy": "own"}).json()
        event = {"ranking_id": shown["ranking_id"], "item": "a", "type": "x" * 500}

        def sent(number):
            answer = post(http, "/v1/events", event | {"event_id": f"e{number}"})
            if answer.status_code == 503:
                raise UnavailableError(answer.json()["message"])

        with full_disk_of_a_process(service) as reason:
            number, said = until_refused(sent)
            assert reason in said
            assert http.get("/readyz").status_code == 503
            # What does not fit into a page that is there.
            large = {"context": {f"key {number}": "x" * 500 for number in range(40)}}
            unlogged = post(http, "/v1/rank", RANK | {"policy": "own"} | large)
            assert (unlogged.status_code, unlogged.json()["logged"], len(unlogged.json()["items"])) == (200, False, 3)
        assert post(http, "/v1/events", event | {"event_id": f"e{number}"}).json()["accepted"] == 1
        assert http.get("/readyz").status_code == 200
        assert post(http, "/v1/rank", RANK).json()["logged"]


def test_random_bytes_and_random_documents_never_end_in_a_500(http):
    rng = random.Random(0)
    base = json.dumps(RANK | {"ranking_id": "r", "context": {"a": 1.5, "b": None}}).encode()
    event = json.dumps([{"event_id": "e", "ranking_id": "r", "item": "a", "value": 1.0}]).encode()
    for _ in range(400):
        path, body = rng.choice([("/v1/rank", bytearray(base)), ("/v1/events", bytearray(event))])
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(body))
            what = rng.random()
            if what < 0.4:
                body[place] = rng.randrange(256)
            elif what < 0.7:
                del body[place : place + rng.randrange(1, 9)]
            else:
                body[place:place] = rng.choice(
                    [b"null", b"1e400", b"[[", b'"', b"{}", b"-", b"\\u0000", b"\\ud800", b","]
                )
            if not body:
                break
        answer = http.post(path, content=bytes(body), headers={"content-type": "application/json"})
        assert answer.status_code in (200, 400, 409, 413, 422), (path, bytes(body), answer.text)
