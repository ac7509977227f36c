"""The attacks of docs/service/threat-model.md, carried out."""

from __future__ import annotations

import hmac
import json
import pickle
import re
import socket
import zipfile
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import rankpolicy as rp
from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain import keys as keys_module
from rankpolicy.service.domain.keys import SCOPES, StoredKey, matching_key, new_key
from rankpolicy.service.http import Application
from rankpolicy.service.log import journal
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.policies import SERVED
from rankpolicy.service.ranking_service import RankingService
from rankpolicy.types import RankPolicyError

POLICIES = {"default": {"kind": "bandit", "bandit": "mp-ts"}, "any": {"kind": "uniform"}}
RANK = {"query": "secret query", "items": [{"id": f"secret {name}"} for name in "abcd"], "cutoff": 3}
NEEDED = {
    ("POST", "/v1/rank"): "rank",
    ("POST", "/v1/events"): "events",
    ("GET", "/v1/rankings/r1"): "read",
    ("GET", "/v1/policies"): "read",
    ("GET", "/metrics"): "read",
}
TRAVERSALS = [
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "....//etc/passwd",
    "..\\..\\etc\\passwd",
    "file:///etc/passwd",
]


def served(path, **settings):
    given = {"window_seconds": 60, "list_seconds": 60, "policies": POLICIES} | settings
    service = RankingService(ServiceConfig(db=str(path), **given))
    return TestClient(Application(service), base_url="http://127.0.0.1", client=("127.0.0.1", 5)), service


@pytest.fixture
def http(tmp_path):
    with served(tmp_path / "service.db")[0] as made:
        yield made


@pytest.fixture
def with_keys(tmp_path):
    """A service and a key for each scope."""
    store = SqliteStore(tmp_path / "service.db")
    made = {}
    for scope in SCOPES:
        made[scope], stored = new_key([scope])
        store.add_key(stored, now=1)
    store.close()
    with served(tmp_path / "service.db")[0] as http:
        yield http, made


def asked(http, method, path, key=None, body=RANK):
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return http.request(method, path, headers=headers, json=body if method == "POST" else None)


def test_without_a_key_nothing_but_health_is_told(with_keys):
    http, keys = with_keys
    wrong = [
        None,
        "",
        "rp_",
        keys["rank"][:-1],
        keys["rank"] + "0",
        keys["rank"].upper(),
        "' OR 1=1 --",
        "rp_" + "0" * 80,
    ]
    for method, path in NEEDED:
        for key in wrong:
            answer = asked(http, method, path, key)
            assert answer.status_code == 401, (path, key)
            assert "secret" not in answer.text
    assert http.get("/healthz").json() == {"status": "ok"}


def test_a_key_does_only_what_its_scopes_say(with_keys):
    http, keys = with_keys
    assert asked(http, "POST", "/v1/rank", keys["rank"], RANK | {"ranking_id": "r1"}).status_code == 200
    for (method, path), needed in NEEDED.items():
        for scope, key in keys.items():
            body = [] if path == "/v1/events" else RANK
            expected = 200 if scope == needed else 403
            assert asked(http, method, path, key, body).status_code == expected, (path, scope)


def test_revoking_the_last_key_opens_nothing(tmp_path):
    store = SqliteStore(tmp_path / "service.db", role="keys")
    _, stored = new_key(SCOPES)
    store.add_key(stored, now=1)
    store.revoke_key(stored.key_id, now=2)
    store.close()
    client, _ = served(tmp_path / "service.db")
    with client as http:
        assert http.post("/v1/rank", json=RANK).status_code == 401
        assert http.get("/metrics").status_code == 401
        assert http.get("/", follow_redirects=False).headers["location"] == "/login"
        assert http.get("/login").status_code == 200


def test_all_keys_are_compared_in_constant_time(monkeypatch):
    pairs = [new_key(["rank"]) for _ in range(5)]
    really = hmac.compare_digest
    compared: list[tuple[bytes, bytes]] = []

    def counted(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return really(one, other)

    monkeypatch.setattr(keys_module.hmac, "compare_digest", counted)
    for given in (pairs[0][0], pairs[4][0], "rp_nothing", ""):  # the first, the last, none
        compared.clear()
        matching_key(given, [stored for _, stored in pairs])
        assert len(compared) == 5  # as much work whichever it is
        assert all(len(one) == len(other) == 32 for one, other in compared)  # hashes, not keys
    source = Path(keys_module.__file__).read_text()
    assert not re.search(r"(digest\w*|given)\s*==", source)


def test_a_key_is_written_nowhere(tmp_path, capfd):
    store = SqliteStore(tmp_path / "service.db")
    key, stored = new_key(["rank"])
    store.add_key(stored, now=1)
    store.close()
    assert isinstance(stored, StoredKey)
    assert key not in repr(stored)
    reports: list[str] = []
    service = RankingService(ServiceConfig(db=str(tmp_path / "service.db"), policies=POLICIES), report=reports.append)
    application = Application(service, report=reports.append)
    with TestClient(application, base_url="http://127.0.0.1", client=("127.0.0.1", 5)) as http:
        answers = [asked(http, "POST", "/v1/rank", key).text, asked(http, "GET", f"/v1/{key}", key).text]
        answers.append(asked(http, "POST", "/v1/rank", key, {"query": 1}).text)
        service.submit_request = None  # a failure of the service itself, with a traceback
        answers.append(asked(http, "POST", "/v1/rank", key).text)
    secret = key.partition(f"{stored.key_id}_")[2]  # which may have underscores itself
    assert reports
    said = capfd.readouterr()
    for text in (*answers, *reports, said.out, said.err):
        assert secret not in text
    for part in tmp_path.iterdir():
        assert secret.encode() not in part.read_bytes()


def test_the_id_of_another_list_tells_nothing(with_keys):
    http, keys = with_keys
    shown = asked(http, "POST", "/v1/rank", keys["rank"]).json()
    name = shown["ranking_id"]
    assert len(set(name[12:])) > 4  # 80 random bits
    other = {"query": "mine", "items": [{"id": "x"}], "ranking_id": name}
    answer = asked(http, "POST", "/v1/rank", keys["rank"], other)
    assert answer.status_code == 409
    assert "secret" not in answer.text
    answer = asked(http, "POST", "/v1/events", keys["events"], {"event_id": "e", "ranking_id": name, "item": "x"})
    assert answer.status_code == 422
    assert "secret" not in answer.text
    assert asked(http, "GET", f"/v1/rankings/{name}", keys["rank"]).status_code == 403
    assert asked(http, "GET", f"/v1/rankings/{name}", keys["events"]).status_code == 403


def test_clicks_on_what_was_not_shown_are_refused(http):
    shown = asked(http, "POST", "/v1/rank").json()
    hidden = ({item["id"] for item in RANK["items"]} - {item["id"] for item in shown["items"]}).pop()
    event = {"event_id": "e", "ranking_id": shown["ranking_id"], "item": hidden}
    assert http.post("/v1/events", json=event).status_code == 422
    assert http.get(f"/v1/rankings/{shown['ranking_id']}").json()["clicked"] == []


def test_a_click_counts_once_however_often_it_is_sent(tmp_path):
    made, service = served(tmp_path / "service.db", window_seconds=0.5)
    with made as http:
        shown = http.post("/v1/rank", json=RANK).json()
        item = shown["items"][0]["id"]
        event = {"event_id": "e", "ranking_id": shown["ranking_id"], "item": item}
        many = [event] * 500 + [event | {"event_id": f"e{number}"} for number in range(500)]
        http.post("/v1/events", json=many)
        bandit = service.policies.named(None).policy._bandit
        for _ in range(500):
            http.post("/v1/events", json=[])
            if bandit.counts_of(RANK["query"], [item])[0, 1]:
                break
        assert bandit.counts_of(RANK["query"], [item]).tolist()[0][0] <= 1


def test_lists_cannot_be_chosen_by_their_id(tmp_path):
    lists = []
    for name in ("one.db", "two.db"):  # two databases, two secrets
        with served(tmp_path / name)[0] as http:
            bodies = [RANK | {"policy": "any", "ranking_id": f"r{number}", "cutoff": 4} for number in range(20)]
            lists.append([http.post("/v1/rank", json=body).json()["items"] for body in bodies])
    assert lists[0] != lists[1]


@pytest.mark.parametrize("name", TRAVERSALS)
def test_names_are_never_paths(http, name, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    answer = http.post("/v1/rank", json=RANK | {"policy": name})
    assert answer.status_code == 422
    assert "root:" not in answer.text
    assert http.post("/v1/rank", json=RANK | {"ranking_id": name}).status_code == 200
    for path in (f"/v1/rankings/{name}", f"/{name}", f"/static/{name}", f"/v1/policies/{name}"):
        assert "root:" not in http.get(path).text
    assert {path.name for path in tmp_path.iterdir()} <= before | {"service.db-wal", "service.db-shm"}
    with pytest.raises(RankPolicyError, match="name of a policy"):
        ServiceConfig(policies={name: {"kind": "given"}})


def test_sql_in_ids_is_text(http):
    name = "r'); DROP TABLE rankings; --"
    assert http.post("/v1/rank", json=RANK | {"ranking_id": name, "query": name}).status_code == 200
    assert http.post("/v1/events", json={"event_id": name, "ranking_id": name, "item": name}).status_code == 422
    assert http.post("/v1/rank", json=RANK | {"ranking_id": name, "query": name}).status_code == 200


def test_a_foreign_page_cannot_use_a_local_service(http):
    assert http.post("/v1/rank", json=RANK, headers={"host": "evil.example"}).status_code == 403
    assert http.post("/v1/rank", json=RANK, headers={"host": "127.0.0.1.evil.example"}).status_code == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = http.post("/v1/rank", content=json.dumps(RANK), headers={"content-type": kind})
        assert answer.status_code == 415
    answer = http.options(
        "/v1/rank", headers={"origin": "https://evil.example", "access-control-request-method": "POST"}
    )
    assert "access-control-allow-origin" not in answer.headers


class Bomb:
    """Leaves a trace if it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("exploded"),))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("models") / "model.rp"
    ranker = rp.Regression(model="linear")
    ranker.fit(rng.normal(size=(20, 2)), np.tile([0.0, 1.0], 10), qid=np.repeat(np.arange(4), 5), progress=False)
    ranker.save(path)
    return path


def parts_of(model):
    with zipfile.ZipFile(model) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forged(path, parts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_forged_models_are_refused(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = parts_of(model)
    weights = next(name for name in parts if name != "manifest.json")
    manifest = json.loads(parts["manifest.json"])
    bomb = pickle.dumps(Bomb())
    forgeries = {
        "a pickle": bomb,
        "a pickle for weights": parts | {weights: bomb},
        "other weights": parts | {weights: parts[weights][:-4] + b"\0\0\1\0"},
        "a member more": parts | {"../evil.py": b"print('evil')"},
        "a member that leaves": {"manifest.json": parts["manifest.json"], "../../" + weights: parts[weights]},
        "another class": parts | {"manifest.json": json.dumps(manifest | {"ranker": "os.system"}).encode()},
        "another kind": parts | {"manifest.json": json.dumps(manifest | {"kind": "__import__('os')"}).encode()},
        "no manifest": {weights: parts[weights]},
        "cut off": model.read_bytes()[:-30],
    }
    for name, content in forgeries.items():
        path = tmp_path / "forged.rp"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            forged(path, content)
        with pytest.raises(RankPolicyError):
            SERVED.named("ranker")(model=str(path))
        assert not (tmp_path / "exploded").exists(), name
        assert not (tmp_path.parent / "evil.py").exists(), name
    assert SERVED.named("ranker")(model=str(forged(tmp_path / "same.rp", parts))).model_sha256


def test_too_many_requests_are_refused_not_remembered(tmp_path, monkeypatch):
    made, service = served(tmp_path / "service.db")
    with made as http:
        monkeypatch.setattr(journal, "MOST_WAITING", 0)
        answer = http.post("/v1/rank", json=RANK)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        monkeypatch.undo()
        assert http.post("/v1/rank", json=RANK).status_code == 200
        assert service.journal.num_waiting == 0


def test_the_service_opens_no_connections(http, monkeypatch):
    def refused(*arguments, **more):
        raise AssertionError("the service opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refused)
    hostile = RANK | {
        "query": "http://evil.example/",
        "context": {"url": "http://evil.example/"},
        "user": "//evil.example",
    }
    assert http.post("/v1/rank", json=hostile).status_code == 200
    assert http.post("/v1/rank", json=RANK | {"policy": "http://evil.example/model.rp"}).status_code == 422
