"""Group commit by the thread alone: failures, recovery."""

import threading

import pytest

from rankpolicy.service.domain.clock import Clock
from rankpolicy.service.errors import ConflictError, UnavailableError
from rankpolicy.service.log.journal import Piece
from rankpolicy.service.log.replay import replay
from rankpolicy.service.log.sqlite import SqliteStore
from tests.service.parts import (
    BANDIT,
    JournalHere,
    break_off_once,
    click,
    events,
    live_policies,
    policy_of,
    ranked,
    request_of,
    until_refused,
)
from tests.waits import wait_until


@pytest.fixture
def running(tmp_path):
    store = SqliteStore(tmp_path / "service.db")
    live = live_policies(store, {"default": BANDIT})
    journal = JournalHere(store, live, Clock(not_before=store.last_stamp()), snapshot_every=50)
    journal.start()
    wait_until(lambda: journal.num_commits)  # the thread has looked for windows that ended while nothing ran
    yield store, live, journal
    if journal._thread.is_alive():
        journal.stop()
    store.close()


def test_many_threads_write_through_few_commits(running):
    store, live, journal = running

    def client(number):
        for turn in range(25):
            ranking_id = f"{number}-{turn}"
            stored = journal.write(ranked(live, ranking_id, request_of("q", "abcdef")))
            assert journal.write(events(click(ranking_id, ranking_id, stored.shown.items[0]))) == ["accepted"]

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.stop()
    counts = store.check()
    assert (counts["rankings"], counts["events"]) == (200, 200)
    assert journal.num_commits < 400


def test_windows_end_by_themselves(running):
    store, live, journal = running
    new = ranked(live, "r1", request_of("q", "ab"))
    journal.write(type(new)(**{name: getattr(new, name) for name in new.__struct_fields__} | {"window": 20_000}))
    wait_until(lambda: journal.num_lessons)
    journal.stop()
    assert live.named(None).policy._bandit.counts_of("q", ["a", "b"]).tolist() == [[0, 1], [0, 1]]
    (found,) = replay(store, policy_of)
    assert list(found.snapshots.values()) == [True]  # kept when the service stopped


def test_a_conflict_is_the_answer_to_one_request_only(running):
    _, live, journal = running
    journal.write(ranked(live, "r1", request_of("q", "ab")))
    with pytest.raises(ConflictError, match="was used before"):
        journal.write(ranked(live, "r1", request_of("other", "ab")))
    journal.write(ranked(live, "r2", request_of("q", "ab")))


def test_a_full_disk_is_answered_and_then_things_go_on(running):
    store, live, journal = running
    journal.write(ranked(live, "r1", request_of("q", "ab")))
    pages = store._connection.pragma("page_count")
    store._connection.pragma("max_page_count", pages)
    number, said = until_refused(lambda number: journal.write(events(click(f"e{number}", "r1", "a", type="x" * 500))))
    assert "is full" in said
    assert "is full" in journal.failure
    # The connection is opened again before the next commit, and the new one has no limit.
    assert journal.write(events(click(f"e{number}", "r1", "a", type="x" * 500))) == ["accepted"]
    assert journal.failure is None


def test_a_commit_whose_answer_was_lost_is_learned_once(running, monkeypatch):
    """The transaction is on disk, but the store failed to say so: the log decides, not memory."""
    store, live, journal = running
    commit = store.commit

    def fails_after_the_commit(work, *, now):
        commit(work, now=now + 10**9)  # all windows end
        monkeypatch.undo()
        raise UnavailableError("the answer was lost")

    journal.write(ranked(live, "r1", request_of("q", "ab")))
    monkeypatch.setattr(store, "commit", fails_after_the_commit)
    with pytest.raises(UnavailableError):
        journal.write(events(click("e1", "r1", "a")))
    journal.write(ranked(live, "r2", request_of("q", "ab")))
    assert live.named(None).policy._bandit.counts_of("q", ["a", "b"]).tolist() == [[0, 1], [0, 1]]
    journal.stop()
    (found,) = replay(store, policy_of)
    assert live.named(None).state_hash() == (found.last_lesson, found.state_sha256)


def test_a_lesson_learned_in_part_is_learned_again_from_the_log(running, monkeypatch):
    _, live, journal = running
    policy = live.named(None).policy
    new = ranked(live, "r1", request_of("q", "ab"))
    break_off_once(policy, monkeypatch)
    journal.write(type(new)(**{name: getattr(new, name) for name in new.__struct_fields__} | {"window": 10_000}))
    wait_until(lambda: journal.failure)
    assert "broke off" in journal.failure
    journal.write(ranked(live, "r2", request_of("q", "ab")))
    assert policy._bandit.counts_of("q", ["a", "b"]).tolist() == [[0, 1], [0, 1]]


def test_after_the_end_nothing_is_taken(running):
    _, live, journal = running
    journal.stop()
    with pytest.raises(UnavailableError, match="stopping"):
        journal.write(ranked(live, "r1", request_of("q", "ab")))


def test_what_comes_while_it_ends_is_answered_too(running):
    _, live, journal = running
    answers = []
    journal.stop()
    journal._waiting.put(
        Piece(ranked(live, "r1", request_of("q", "ab")), answers.append)
    )  # passed the check just before
    journal.stop()
    assert [type(answer) for answer in answers] == [UnavailableError]
