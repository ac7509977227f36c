"""Several servers on one PostgreSQL database have one log and the same states."""

from __future__ import annotations

import threading
import time

import pytest

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.clock import Clock
from rankpolicy.service.errors import DamagedStoreError, UnavailableError
from rankpolicy.service.log import open_store
from rankpolicy.service.log.replay import replay
from rankpolicy.service.log.writer import Writer
from rankpolicy.service.ranking_service import RankingService
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, JournalHere, Parts, click, events, live_policies, policy_of, ranked, request_of
from tests.waits import wait_until


def test_each_server_learns_what_the_other_was_told(cluster):
    url = cluster.new_database()
    one, two = (Parts(url, {"default": BANDIT}) for _ in range(2))
    assert one.live.named(None).version == two.live.named(None).version
    assert one.store.secret() == two.store.secret()
    item = one.show("r1").shown.items[0]
    assert two.do(events(click("e1", "r1", item))) == ["accepted"]
    assert one.do(events(click("e1", "r1", item))) == ["duplicate"]
    two.clock.time = 10**12
    two.do()  # its clock is ahead: the window ends
    assert two.counts("q", item) == [[1, 1]]
    assert one.counts("q", item) == [[0, 0]]
    assert one.show("r2", query="other").stamp == 10**12  # time goes on from the latest in the log
    assert one.counts("q", item) == [[1, 1]]
    assert one.state() == two.state()
    two.store.reopen()  # after a failure the log is read again, and nothing is learned twice
    one.clock.time = 10**13
    one.do()
    two.live.catch_up(two.store)
    two.do()
    assert one.state() == two.state()
    one.store.close(), two.store.close()


def test_servers_that_write_at_once_leave_one_log_without_gaps(cluster):
    url = cluster.new_database()
    servers = []
    for _ in range(3):
        store = open_store(url)
        live = live_policies(store, {"default": BANDIT})
        servers.append((store, live, JournalHere(store, live, Clock(not_before=store.last_stamp()), snapshot_every=20)))
    failures = []

    def client(number):
        _, live, journal = servers[number % 3]
        try:
            for turn in range(10):
                name = f"{number}-{turn}"
                shown = journal.write(ranked(live, name, request_of("q", "abcdef"))).shown.items
                assert journal.write(events(click(name, name, shown[0]))) in (["accepted"], ["late"])
        except BaseException as error:
            failures.append(error)

    for _, _, journal in servers:
        journal.start()
    threads = [threading.Thread(target=client, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _, _, journal in servers:
        journal.stop()
    assert not failures
    late = 10**17
    for store, live, _ in [*servers, servers[0]]:  # the first is told what the last one learned
        live.learn(store.commit([], now=late).lessons)
    counts = servers[0][0].check()
    assert (counts["rankings"], counts["events"], counts["lessons"]) == (60, 60, 60)
    (found,) = replay(servers[0][0], policy_of)
    assert found.is_equal
    assert {live.named(None).state_hash() for _, live, _ in servers} == {(found.last_lesson, found.state_sha256)}
    for store, _, _ in servers:
        store.close()


def test_a_server_learns_what_others_were_told_while_its_writer_started(cluster, monkeypatch):
    """The process brings lessons from the moment on at which it is ready; those before it are read from the log."""
    url = cluster.new_database()
    other = Parts(url, {"default": BANDIT})
    item = other.show("r1").shown.items[0]
    other.do(events(click("e1", "r1", item)))
    reopen = Writer.reopen

    def slowly(writer):
        other.end_windows()
        reopen(writer)

    monkeypatch.setattr(Writer, "reopen", slowly)
    service = RankingService(ServiceConfig(store=url, list_seconds=60, policies={"default": BANDIT}))
    assert service.policies.named(None).state_hash() == other.live.named(None).state_hash()
    service.stop()
    other.store.close()


def test_a_database_that_crashes_is_unavailable_and_then_goes_on(cluster):
    store = open_store(cluster.new_database())
    reader = open_store(store._url, role="reader")
    live = live_policies(store, {"default": BANDIT})
    journal = JournalHere(store, live, Clock(not_before=store.last_stamp()))
    journal.start()
    journal.write(ranked(live, "r1", request_of("q", "ab")))
    cluster.crash()
    with pytest.raises(UnavailableError, match="nothing was stored"):
        journal.write(ranked(live, "r2", request_of("q", "ab")))
    with pytest.raises(UnavailableError):
        reader.ranking("r1")
    cluster.start()
    wait_until(
        lambda: time.monotonic() > store._no_attempt_before
    )  # it was asked while it started, and is left alone for a moment
    assert journal.write(events(click("e1", "r1", "a"))) in (["accepted"], ["late"])
    wait_until(lambda: time.monotonic() > reader._no_attempt_before)
    assert reader.ranking("r1").shown.ranking_id == "r1"
    assert reader.ranking("r2") is None
    journal.stop()
    assert store.check()["events"] == 1
    store.close(), reader.close()


def test_rows_that_were_changed_are_noticed(cluster):
    parts = Parts(cluster.new_database(), {"default": BANDIT})
    parts.show("r1")
    parts.end_windows()
    parts.store._connection.execute("UPDATE lessons SET clicks = '\\x010101'")
    with pytest.raises(DamagedStoreError, match="row 2 of lessons is damaged"):
        parts.store.check()
    parts.store.close()


def test_errors_do_not_tell_the_password(cluster):
    with pytest.raises(UnavailableError) as refused:
        open_store("postgresql://someone:s3cret@127.0.0.1:1/search?connect_timeout=2")
    assert "s3cret" not in str(refused.value)
    assert "the database search on 127.0.0.1" in str(refused.value)
    with pytest.raises(RankPolicyError, match="no tables of a service"):
        open_store(cluster.new_database(), role="reader")
