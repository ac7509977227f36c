"""Old lists are deleted, what was learned from them is not, and replay equals the live state before and after."""

import random
import time

import pytest

from rankpolicy.service.errors import DamagedStoreError
from rankpolicy.service.log import retention
from rankpolicy.service.log.replay import replay, replay_choices
from rankpolicy.service.log.retention import delete_before, delete_older_than
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.policies.policy_settings import policy_of_version
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, WINDOW, Parts, click, events
from tests.service.test_http import client_of, post
from tests.service.test_replay import live_for_a_while
from tests.waits import wait_until

POLICIES = {
    "default": BANDIT,
    "capped": {"kind": "bandit", "bandit": "dcm-ts", "max_queries": 2},
    "apprentice": {"kind": "apprentice", "of": BANDIT},
    "own": {"kind": "given"},
}


@pytest.fixture(params=["default", "capped", "apprentice"])
def parts(place, request):
    made = Parts(place, {request.param: POLICIES[request.param], "own": POLICIES["own"]})
    live_for_a_while(made, random.Random(5), 60)
    made.end_windows()
    yield made
    made.store.close()


def replayed(parts):
    parts.store.check()
    assert replay_choices(parts.store).is_equal
    (found,) = replay(parts.store, lambda version: policy_of_version(version, parts.store.model))
    assert found.is_equal
    return found


def test_replay_equals_the_live_state_after_every_deletion(parts, monkeypatch):
    monkeypatch.setattr(retention, "ROWS_AT_ONCE", 37)
    before = replayed(parts)
    parts.store.save_snapshot(parts.live.named(None).snapshot(), now=parts.clock.time)
    half = parts.store.ranking("r30").stamp
    rows = sum(parts.store.check().values())
    deleted = delete_before(parts.store, half, author="test", now=parts.clock.time)
    assert 0 < deleted < rows
    assert sum(parts.store.check().values()) == rows - deleted
    assert parts.store.ranking("r5") is None
    assert parts.store.ranking("r40") is not None
    after = replayed(parts)
    assert (after.state_sha256, after.last_lesson) == (before.state_sha256, before.last_lesson)
    assert 0 < after.lessons < before.lessons
    assert delete_before(parts.store, half, author="test", now=parts.clock.time) == 0
    # It goes on: more lists, a restart from the snapshot, one without any, and one more deletion.
    live_for_a_while(parts, random.Random(6), 30, start=60)
    parts.end_windows()
    for damage in (None, "DELETE FROM snapshots", "UPDATE snapshots SET state = substr(state, 2)"):
        if damage:
            parts.store._connection.execute(damage)
        state = parts.state()
        parts.store.close()
        parts.open()
        assert parts.state() == state
    parts.store._connection.execute("DELETE FROM snapshots")
    assert delete_before(parts.store, parts.clock.time, author="test", now=parts.clock.time) > 0
    assert parts.live.named(None).state_hash()[1] == replayed(parts).state_sha256
    lines = [change for change in parts.store.changes() if change.action == "delete"]
    assert {line.author for line in lines} == {"test"}
    assert parts.store.num_deleted() >= deleted


def test_open_lists_and_waiting_events_stay(tmp_path):
    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    parts.show("old")
    parts.end_windows()
    parts.show("open")
    parts.do(events(click("e1", "never", "a")))
    parts.show("new")
    assert delete_before(parts.store, parts.clock.time + 10 * WINDOW, author="test", now=parts.clock.time) == 2
    assert parts.store.ranking("open") is not None
    parts.end_windows()
    parts.show("never", items="ab")
    replayed(parts)
    parts.store.close()


def test_a_damaged_anchor_is_noticed(parts):
    delete_before(parts.store, parts.store.ranking("r30").stamp, author="test", now=parts.clock.time)
    parts.store._connection.execute("UPDATE anchors SET state = substr(state, 2)")
    with pytest.raises(DamagedStoreError, match="anchors is damaged"):
        replayed(parts)
    parts.store._connection.execute("DELETE FROM rankings WHERE seq = (SELECT min(seq) FROM rankings)")
    with pytest.raises(DamagedStoreError, match="missing"):
        parts.store.check()


def test_a_service_deletes_what_is_too_old(tmp_path):
    path = tmp_path / "service.db"
    parts = Parts(path, {"default": BANDIT})
    parts.clock.time = time.time_ns() // 1000 - round(20 * 86_400e6)
    live_for_a_while(parts, random.Random(1), 20)
    parts.end_windows()
    last, state = parts.live.named(None).state_hash()
    parts.store.close()
    with client_of(path, policies={"default": BANDIT}, retention_days=1.0) as http:
        wait_until(lambda: any(line["action"] == "delete" for line in http.get("/v1/audit").json()["audit"]))
        assert http.get("/v1/rankings/r3").status_code == 404
        shown = post(http, "/v1/rank", {"query": "q", "items": [{"id": "a"}]}).json()
        wait_until(lambda: http.get(f"/v1/rankings/{shown['ranking_id']}").json()["learned"])
    store = SqliteStore(path)
    store.check()
    assert store.anchor(1).seq < last  # the last of the old lists stays, so that numbers go on
    assert replay(store, policy_of_version, until=last)[0].state_sha256 == state
    assert replay(store, policy_of_version)[0].is_equal
    store.close()


def test_nothing_is_deleted_after_the_clock_has_jumped(place):
    parts = Parts(place, {"default": BANDIT})
    live_for_a_while(parts, random.Random(1), 20)
    parts.end_windows()
    rows = parts.store.check()
    parts.clock.time += round(3_650 * 86_400e6)
    with pytest.raises(RankPolicyError, match=r"no list for 3650 days.*the clock seems to have jumped"):
        delete_older_than(parts.store, 1.0, now=parts.clock.time)
    live_for_a_while(
        parts, random.Random(2), 20, start=20
    )  # lists are shown by the wrong clock, for longer than they are kept
    parts.clock.time += round(2 * 86_400e6)
    with pytest.raises(RankPolicyError, match="no list for 3650 days"):
        delete_older_than(parts.store, 1.0, now=parts.clock.time)
    assert parts.store.check()["rankings"] == rows["rankings"] + 20
    assert delete_before(parts.store, parts.clock.time, author="test", now=parts.clock.time) > 0  # by hand
    assert delete_older_than(parts.store, 1.0, now=parts.clock.time) == 0
    parts.store.close()


def test_the_command_deletes_and_says_so(tmp_path, capsys):
    from rankpolicy.cli.main import run

    parts = Parts(tmp_path / "service.db", {"default": BANDIT})
    live_for_a_while(parts, random.Random(1), 5)
    parts.end_windows()
    parts.store.close()
    words = ["service", "delete", "--db", str(tmp_path / "service.db"), "--before"]
    assert run([*words, "soon"]) == 2
    assert run([*words, "1970-01-01"]) == 0
    assert "nothing to delete" in capsys.readouterr().err
    assert run([*words, time.strftime("%Y-%m-%d")]) == 0
    assert "rows of the log were deleted" in capsys.readouterr().err
