"""The interface on a PostgreSQL database: the same answers, and a restart that forgets nothing."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.http import Application
from rankpolicy.service.http.access import Access
from rankpolicy.service.log import open_store
from rankpolicy.service.ranking_service import RankingService
from rankpolicy.types import RankPolicyError
from tests.waits import wait_until

RANK = {"query": "shoes", "items": [{"id": name} for name in "abcd"], "cutoff": 3}
POLICIES = {"default": {"kind": "bandit", "bandit": "epsilon-greedy"}}


def served(url: str, *, list_seconds: float = 60.0) -> TestClient:
    config = ServiceConfig(store=url, window_seconds=60, list_seconds=list_seconds, policies=POLICIES)
    service = RankingService(config)
    return TestClient(Application(service), base_url="http://127.0.0.1", client=("127.0.0.1", 5))


def test_lists_and_clicks_survive_a_restart(cluster):
    url = cluster.new_database()
    with served(url) as http:
        shown = http.post("/v1/rank", json=RANK | {"ranking_id": "r1"}).json()
        assert shown["logged"]
        event = {"event_id": "e1", "ranking_id": "r1", "item": shown["items"][0]["id"]}
        assert http.post("/v1/events", json=event).json()["accepted"] == 1
        bad = event | {"event_id": "nul\0"}
        assert http.post("/v1/events", json=bad).status_code == 422
        assert http.post("/v1/rank", json=RANK | {"ranking_id": "r\0"}).status_code == 422
    with served(url) as http:
        again = http.post("/v1/rank", json=RANK | {"ranking_id": "r1"}).json()
        assert again["items"] == shown["items"]
        assert http.post("/v1/events", json=event).json()["duplicate"] == 1
        assert http.get("/v1/rankings/r1").json()["clicked"] == [event["item"]]


def test_models_are_promoted_and_rolled_back_and_the_log_is_read(cluster):
    url = cluster.new_database()
    with served(url) as http:
        http.post("/v1/rank", json=RANK | {"ranking_id": "r1"})
        assert http.get("/v1/audit").status_code == 200
        page = http.get("/v1/statistics")
        assert page.status_code == 200
    store = open_store(url, role="keys")
    try:
        digest = store.save_model(b"a model", now=1)
        assert store.save_model(b"a model", now=2) == digest
        assert (store.model(digest), store.model("0" * 64)) == (b"a model", None)
        (shown,) = list(store.logged())
        assert shown.shown.ranking_id == "r1"
        assert [one.ranking_id for _, one, _ in store.shown_lists()] == ["r1"]
        second = store.version_of("default", "given", "{}", now=3)
        number = store.add_change("test", "promote", "default", version=second.number, now=4).number
        assert store.last_change() == number
        assert store.add_change("test", "rollback", "default", now=5).version == 1
        assert [change.action for change in store.changes()][-2:] == ["promote", "rollback"]
    finally:
        store.close()


def test_a_store_that_is_no_url_is_refused():
    with pytest.raises(RankPolicyError, match="postgresql://user@host/database; for a file use db"):
        ServiceConfig(store="rankpolicy.db")


def test_after_a_restart_of_the_database_keys_and_readiness_are_right_again(cluster):
    url = cluster.new_database()
    keys = open_store(url, role="keys")
    old, stored = new_key(["rank"])
    keys.add_key(stored, now=1)
    with served(url) as http:

        def rank(key):
            return http.post("/v1/rank", json=RANK, headers={"authorization": f"Bearer {key}"})

        assert rank(old).json()["logged"]
        cluster.crash()
        try:
            wait_until(lambda: http.get("/readyz").status_code == 503)
            assert not rank(old).json()["logged"]  # a known key still gets lists
        finally:
            cluster.start()
        keys.reopen()
        new, new_stored = new_key(["rank"])
        keys.add_key(new_stored, now=2)
        keys.revoke_key(stored.key_id, now=3)
        keys.close()
        wait_until(lambda: rank(old).status_code == 401)
        wait_until(lambda: rank(new).status_code == 200 and rank(new).json()["logged"])
        wait_until(lambda: http.get("/readyz").status_code == 200)


def test_a_service_without_keys_answers_after_a_restart_of_the_database(cluster):
    with served(cluster.new_database()) as http:
        cluster.crash()
        try:
            wait_until(lambda: http.get("/readyz").status_code == 503)
            access = http.app._access
            access.look()  # fails, and no key was made before it
            assert not http.post("/v1/rank", json=RANK).json()["logged"]
            unread = Access(access._read_keys, access._read_had_keys)
            with pytest.raises(UnavailableError):
                unread.needs_no_key()  # before the first look that succeeds nobody knows
        finally:
            cluster.start()
        wait_until(lambda: http.post("/v1/rank", json=RANK).json()["logged"])
        wait_until(lambda: http.get("/readyz").status_code == 200)


@pytest.mark.parametrize(
    "changed",
    [
        "UPDATE log_end SET seq = seq - 1",  # what a copy that lagged behind would say
        "DROP TABLE log_end, meta, rankings, events, lessons, keys CASCADE",
    ],
)
def test_a_database_that_has_less_than_was_acknowledged_is_not_written(cluster, changed):
    import psycopg

    url = cluster.new_database()
    with served(url) as http:
        shown = http.post("/v1/rank", json=RANK | {"ranking_id": "r1"}).json()
        assert shown["logged"]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(changed)
        cluster.crash()
        cluster.start()
        wait_until(lambda: http.get("/readyz").status_code == 503)
        again = http.post("/v1/rank", json=RANK)
        assert (again.status_code, again.json()["logged"]) == (200, False)
        assert http.get("/readyz").status_code == 503
        event = {"event_id": "e1", "ranking_id": "r1", "item": shown["items"][0]["id"]}
        assert http.post("/v1/events", json=event).status_code == 503
        with psycopg.connect(url, autocommit=True) as connection:
            if changed.startswith("DROP"):
                assert connection.execute("SELECT to_regclass('log_end')").fetchone() == (None,)
            else:
                connection.execute("UPDATE log_end SET seq = seq + 1")  # the right database is back
                wait_until(lambda: http.post("/v1/rank", json=RANK).json()["logged"])
                wait_until(lambda: http.get("/readyz").status_code == 200)


@pytest.mark.parametrize("has_keys", [False, True])
def test_a_database_that_does_not_answer_keeps_no_list_waiting(cluster, has_keys):
    url = cluster.new_database()
    key, stored = new_key(["rank", "read"])
    if has_keys:
        keys = open_store(url, role="keys")
        keys.add_key(stored, now=1)
        keys.close()
    with served(url, list_seconds=0.1) as http:
        http.headers["authorization"] = f"Bearer {key}"
        with cluster.stalled():
            wait_until(lambda: http.get("/readyz").status_code == 503)  # nobody asks for a list meanwhile
            assert not http.post("/v1/rank", json=RANK).json()["logged"]
            assert http.get("/healthz").status_code == 200
        wait_until(lambda: http.post("/v1/rank", json=RANK).json()["logged"])
        wait_until(lambda: http.get("/readyz").status_code == 200)
