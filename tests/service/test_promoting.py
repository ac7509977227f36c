"""Versions in front of users: promoted, on trial, rolled back, and always the ones that the log says."""

import json
import zipfile
from itertools import count

import pytest

from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log.replay import replay, replay_choices
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.policies.policy_settings import policy_of_version
from tests.service.models import BEST_FIRST, ITEMS, saved_ranker
from tests.service.test_http import client_of, post
from tests.waits import wait_until

POLICIES = {"search": {"kind": "bandit", "bandit": "dcm-ts"}, "own": {"kind": "given"}}
RANK = {"query": "q", "items": ITEMS, "cutoff": 4}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return saved_ranker(folder / "up.rp"), saved_ranker(folder / "down.rp", sign=-1)


@pytest.fixture
def http(tmp_path):
    with client_of(tmp_path / "service.db", policies=POLICIES) as made:
        yield made


def sent(http, path, **more):
    found = http.post(
        "/v1/models", content=path.read_bytes(), headers={"content-type": "application/octet-stream"}, **more
    )
    return found.json().get("model_sha256", found.json())


def served(http, number, **more):
    return post(http, "/v1/rank", RANK | {"ranking_id": f"r{number}"} | more).json()


def order(answer):
    return [item["id"] for item in answer["items"]]


def versions_of(http, policy="search"):
    (found,) = [one for one in http.get("/v1/policies").json()["policies"] if one["name"] == policy]
    return {one["version"]: one["share"] for one in found["versions"]}


def replayed(path):
    store = SqliteStore(path, role="reader", check="none")
    try:
        store.check()
        states = replay(store, lambda version: policy_of_version(version, store.model))
        return replay_choices(store), states
    finally:
        store.close()


def test_a_model_is_promoted_and_rolled_back(http, files, tmp_path):
    up, down = (sent(http, path) for path in files)
    assert versions_of(http) == {1: 1.0}
    assert post(http, "/v1/policies/search/promote", {"model_sha256": up}).json()["version"] == 2
    answer = served(http, 1)
    assert (order(answer), answer["policy_version"], answer["model_sha256"]) == (BEST_FIRST, 2, up)
    assert post(http, "/v1/policies/search/promote", {"model_sha256": down, "detail": "try"}).json()["version"] == 3
    assert order(served(http, 2)) == BEST_FIRST[::-1]
    assert versions_of(http) == {1: 0.0, 2: 0.0, 3: 1.0}
    assert post(http, "/v1/policies/search/rollback", {}).json()["version"] == 2
    assert order(served(http, 3)) == BEST_FIRST
    assert post(http, "/v1/policies/search/rollback", {"detail": "all"}).json()["version"] == 1
    assert served(http, 4)["model_sha256"] is None
    nothing = post(http, "/v1/policies/search/rollback", {})
    assert (nothing.status_code, "nothing to roll back" in nothing.json()["message"]) == (422, True)
    actions = [(line["action"], line["version"], line["detail"]) for line in http.get("/v1/audit").json()["audit"]]
    assert actions[:5] == [
        ("rollback", 1, "all"), ("rollback", 2, ""), ("promote", 3, "try"), ("promote", 2, ""), ("configure", 1, "")
    ]  # fmt: skip
    choices, _ = replayed(tmp_path / "service.db")
    assert (choices.is_equal, choices.lists, choices.changes) == (True, 4, 6)


def test_a_canary_gets_its_share_and_replay_chooses_the_same(http, files, tmp_path):
    post(http, "/v1/policies/search/promote", {"model_sha256": sent(http, files[0]), "share": 0.3})
    answers = [served(http, number) for number in range(300)]
    on_trial = [answer for answer in answers if answer["mode"] == "canary"]
    assert 60 <= len(on_trial) <= 120  # 0.3 of 300, within four standard deviations
    assert all(order(answer) == BEST_FIRST and answer["policy_version"] == 2 for answer in on_trial)
    for user in range(20):  # a user stays on one side
        assert len({served(http, f"u{user}-{visit}", user=f"user {user}")["policy_version"] for visit in range(3)}) == 1
    post(http, "/v1/policies/search/rollback", {})
    assert {served(http, f"after {number}")["mode"] for number in range(30)} == {"served"}
    choices, states = replayed(tmp_path / "service.db")
    assert (choices.is_equal, choices.lists) == (True, 390)
    assert states[0].is_equal


def test_replay_notices_a_list_that_went_to_the_wrong_version(http, files, tmp_path):
    post(http, "/v1/policies/search/promote", {"model_sha256": sent(http, files[0]), "share": 0.5})
    for number in range(20):
        served(http, number)
    store = SqliteStore(tmp_path / "service.db", role="reader", check="none")
    lists = list(store.shown_lists())
    place = next(place for place, (_, shown, _) in enumerate(lists) if shown.mode == "canary")
    lists[place] = (1, *lists[place][1:])  # the version of the configuration
    store.shown_lists = lambda: iter(lists)
    wrong = replay_choices(store).wrong
    store.close()
    assert wrong == [f"r{place}"]


def test_promotions_outlive_a_restart_and_a_changed_configuration_replaces_them(tmp_path, files):
    path = tmp_path / "service.db"
    with client_of(path, policies=POLICIES) as http:
        post(http, "/v1/policies/search/promote", {"model_sha256": sent(http, files[0])})
    with client_of(path, policies=POLICIES) as http:
        assert order(served(http, 1)) == BEST_FIRST
        post(http, "/v1/policies/search/rollback", {})
        assert served(http, 2)["policy_version"] == 1
        post(http, "/v1/policies/search/promote", {"version": 2, "share": 0.5})
    with client_of(path, policies=POLICIES | {"search": {"kind": "uniform"}}) as http:
        assert versions_of(http) == {3: 1.0}
        assert served(http, 3)["policy_version"] == 3
        learns = post(http, "/v1/policies/search/promote", {"version": 1})
        assert (learns.status_code, "learns online" in learns.json()["message"]) == (422, True)
    assert replayed(path)[0].is_equal


def test_another_process_may_promote_beside_a_running_service(http, files, tmp_path):
    from rankpolicy.cli.main import run

    db = str(tmp_path / "service.db")
    assert run(["service", "promote", str(files[0]), "--policy", "search", "--share", "100%", "--db", db]) == 0
    looks = count()
    wait_until(lambda: served(http, next(looks))["policy_version"] == 2)
    assert run(["service", "rollback", "--policy", "search", "--db", db]) == 0
    wait_until(lambda: versions_of(http) == {1: 1.0})
    assert [line["key"] for line in http.get("/v1/audit").json()["audit"][:2]] == ["command line"] * 2


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 422, "either version or model_sha256"),
        ({"version": 1, "model_sha256": "a"}, 422, "either version or model_sha256"),
        ({"version": 9}, 422, "has no version 9"),
        ({"version": 1}, 422, "serves already"),
        ({"model_sha256": "../../etc/passwd"}, 404, "no model with this hash"),
        ({"model_sha256": "0" * 64, "share": 0}, 422, "share"),
        ({"model_sha256": "0" * 64, "share": 1.5}, 422, "share"),
        ({"version": 1, "share": "1"}, 422, "share"),
        ({"version": 1, "model": "/etc/passwd"}, 422, "model"),
    ],
)
def test_what_cannot_be_promoted_is_refused_and_changes_nothing(http, body, status, words):
    found = post(http, "/v1/policies/search/promote", body)
    assert (found.status_code, words in found.json()["message"]) == (status, True), found.json()
    assert versions_of(http) == {1: 1.0}
    assert post(http, "/v1/policies/nobody/promote", {"version": 1}).status_code == 404
    assert post(http, "/v1/policies/..%2F..%2Fetc/rollback", {}).status_code == 404


def forged(path, target, change):
    """A copy of a model with changed members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target


def _flip(members):
    name = next(name for name in members if name != "manifest.json")
    members[name] = members[name][:-1] + bytes([members[name][-1] ^ 1])


def _pickle(members):
    manifest = json.loads(members["manifest.json"])
    manifest["ranker"] = "__import__('os').system"
    members["manifest.json"] = json.dumps(manifest).encode()


FORGERIES = {
    "a flipped bit": _flip,
    "a member more": lambda members: members.update({"evil.pkl": b"\x80\x04N."}),
    "another kind": _pickle,
    "a path": lambda members: members.update({"../../evil": b"x"}),
    "no manifest": lambda members: members.pop("manifest.json"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_models_are_refused(http, files, tmp_path, forgery):
    from rankpolicy.cli.main import run

    path = forged(files[0], tmp_path / "forged.rp", FORGERIES[forgery])
    said = sent(http, path)
    assert said["error"] == "invalid"
    assert "tmp" not in said["message"]
    db = str(tmp_path / "service.db")
    assert run(["service", "promote", str(path), "--policy", "search", "--db", db]) == 2
    assert versions_of(http) == {1: 1.0}


def test_bytes_that_are_no_model_are_refused(http):
    for content, kind, status in (
        (b"", "application/octet-stream", 422),
        (b"PK\x03\x04", "application/octet-stream", 422),
        (b"{}", "application/octet-stream", 422),
        (b"{}", "application/json", 415),
    ):
        found = http.post("/v1/models", content=content, headers={"content-type": kind})
        assert found.status_code == status, (content, found.json())
    assert http.get("/v1/models").status_code == 405


def test_only_a_key_with_the_scope_may_promote_and_its_id_is_in_the_audit_log(tmp_path, files):
    path = tmp_path / "service.db"
    store = SqliteStore(path)
    keys = {}
    for name, scopes in {"ranks": ["rank", "events", "read"], "promotes": ["promote", "read"]}.items():
        keys[name], stored = new_key(scopes)
        store.add_key(stored, now=1)
    store.close()
    with client_of(path, policies=POLICIES) as http:
        heads = {name: {"authorization": f"Bearer {key}"} for name, key in keys.items()}
        for path_of, body in (("promote", {"version": 1}), ("rollback", {})):
            assert post(http, f"/v1/policies/search/{path_of}", body).status_code == 401
            assert post(http, f"/v1/policies/search/{path_of}", body, headers=heads["ranks"]).status_code == 403
        assert http.post("/v1/models", content=b"", headers=heads["ranks"]).status_code == 403
        assert http.get("/v1/audit").status_code == 401
        found = http.post(
            "/v1/models",
            content=files[0].read_bytes(),
            headers=heads["promotes"] | {"content-type": "application/octet-stream"},
        ).json()
        post(http, "/v1/policies/search/promote", found, headers=heads["promotes"])
        line = http.get("/v1/audit", headers=heads["promotes"]).json()["audit"][0]
        assert (line["action"], line["key"]) == ("promote", keys["promotes"].split("_")[1])
        assert keys["promotes"] not in json.dumps(http.get("/v1/audit", headers=heads["promotes"]).json())


def test_a_change_that_was_altered_on_disk_is_noticed(http, files, tmp_path):
    post(http, "/v1/policies/search/promote", {"model_sha256": sent(http, files[0])})
    store = SqliteStore(tmp_path / "service.db", role="keys", check="none")
    store._connection.execute("UPDATE models SET content = zeroblob(length(content))")
    with pytest.raises(DamagedStoreError, match="the model"):
        store.model(store.rows("SELECT sha256 FROM models")[0][0])
    store._connection.execute("DELETE FROM changes WHERE number = 1")
    with pytest.raises(DamagedStoreError, match="change 1 is missing"):
        store.changes()
    store.close()
