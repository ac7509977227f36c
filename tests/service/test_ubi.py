"""Queries and events of UBI 1.3 as they are sent elsewhere: accepted, learned from, and safe to send again."""

import json

import pytest

from tests.service.test_http import client_of, post
from tests.waits import wait_until

POLICIES = {
    "default": {"kind": "uniform"},
    "search": {"kind": "apprentice", "of": {"kind": "bandit", "bandit": "mp-ts"}},
}
QUERY = {
    "application": "primary-search",
    "query_id": "00112233-4455-6677-8899-aabbccddeeff",
    "client_id": "BugsBunny::Firefox@0967084",
    "user_query": "rust programming",
    "query_attributes": {"experiment_id": "12345", "filters": {"brand": ["x"]}},
    "object_id_field": "sku",
    "timestamp": "2026-11-13T20:20:39Z",
    "query_response_id": "5e3b2a1c",
    "query_response_hit_ids": ["B07XLFYN6S", "B013UFPODY", "17"],
}
EVENT = {
    "application": "primary-search",
    "action_name": "click_through",
    "query_id": QUERY["query_id"],
    "session_id": "84266fdbd31d4c2c6d0665f7e8380fa3",
    "client_id": QUERY["client_id"],
    "user_id": "u1",
    "timestamp": "2026-11-13T20:20:41",
    "message_type": "CONVERSION",
    "message": "a click",
    "event_attributes": {
        "object": {"object_id": 17, "object_id_type": "product", "object_id_field": "sku", "extra": [1]},
        "position": {"ordinal": 3},
        "dwell_time": 4.5,
    },
}
NOTHING = {"accepted": 0, "duplicate": 0, "orphan": 0, "late": 0, "rejected": [], "ignored": 0}


@pytest.fixture
def http(tmp_path):
    with client_of(tmp_path / "service.db", policies=POLICIES) as made:
        yield made


def test_hits_and_clicks_of_a_search_engine_are_learned(http):
    assert post(http, "/v1/ubi/queries", QUERY).json() == {"accepted": 1, "policy": "search", "rejected": []}
    assert post(http, "/v1/ubi/queries", [QUERY]).json()["accepted"] == 1  # sent again
    assert post(http, "/v1/ubi/events", EVENT).json() == NOTHING | {"accepted": 1}
    assert post(http, "/v1/ubi/events", [EVENT, EVENT]).json() == NOTHING | {"duplicate": 2}
    found = http.get(f"/v1/rankings/{QUERY['query_id']}").json()
    assert found["shown"]["items"] == QUERY["query_response_hit_ids"]
    wait_until(lambda: http.get(f"/v1/rankings/{QUERY['query_id']}").json()["learned"])
    assert http.get(f"/v1/rankings/{QUERY['query_id']}").json()["clicked"] == ["17"]
    search = http.get("/v1/policies").json()["policies"][1]
    assert search["report"]["lists"] == 1


def test_events_before_their_query_wait_and_others_are_ignored(http):
    login = {"action_name": "login", "timestamp": "2026-11-13T20:20:41Z"}
    without = EVENT | {"event_attributes": {"position": {"xy": {"x": 1, "y": 2}}}}
    answer = post(http, "/v1/ubi/events", [EVENT, login, without, EVENT | {"action_name": "purchase"}]).json()
    assert answer == NOTHING | {"orphan": 2, "ignored": 2}
    post(http, "/v1/ubi/queries", QUERY)
    assert http.get(f"/v1/rankings/{QUERY['query_id']}").json()["clicked"] == ["17"]


def test_the_same_query_id_for_other_hits_is_a_conflict(http):
    post(http, "/v1/ubi/queries", QUERY)
    other = QUERY | {"query_response_hit_ids": ["1"]}
    assert post(http, "/v1/ubi/queries", other).status_code == 409
    mixed = post(http, "/v1/ubi/queries", [other, {"user_query": "x" * 5000}, {"user_query": ""}])
    assert (mixed.status_code, mixed.json()["accepted"], len(mixed.json()["rejected"])) == (200, 2, 1)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("events", {"action_name": "click"}),
        ("events", {"action_name": "click", "timestamp": "yesterday", "query_id": "a",
                    "event_attributes": {"object": {"object_id": "x"}}}),
        ("events", EVENT | {"event_attributes": {"object": {"object_id": None}}}),
        ("events", EVENT | {"query_id": 7}),
        ("events", [EVENT] * 5001),
        ("events", "click"),
        ("queries", {"query_id": "a"}),
        ("queries", {"user_query": None}),
        ("queries", {"user_query": "a", "query_response_hit_ids": [1]}),
        ("queries", {"user_query": "a\0", "query_response_hit_ids": ["x"]}),
    ],
)  # fmt: skip
def test_what_is_not_ubi_is_refused(http, path, body):
    answer = http.post(f"/v1/ubi/{path}", content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code in (413, 422), answer.json()
    assert answer.json()


def test_queries_need_a_policy_that_shows_the_callers_order(tmp_path):
    with client_of(tmp_path / "service.db", policies={"default": {"kind": "uniform"}}) as http:
        answer = post(http, "/v1/ubi/queries", QUERY)
        assert (answer.status_code, "given or apprentice" in answer.json()["message"]) == (422, True)
