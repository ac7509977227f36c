"""Group commit in the event loop and in the thread, failures, recovery."""

import threading

import msgspec
import pytest

from rankpolicy.service.clock import Clock
from rankpolicy.service.errors import ConflictError, UnavailableError
from rankpolicy.service.journal import MOST_IN_LOOP, Journal
from rankpolicy.service.replay import replay
from rankpolicy.service.sqlite import SqliteStore
from tests.service.parts import BANDIT, click, events, live_policies, policy_of, ranked, request_of, until_refused


@pytest.fixture
def running(tmp_path):
    store = SqliteStore(tmp_path / "service.db")
    live = live_policies(store, {"default": BANDIT})
    journal = Journal(store, live, Clock(not_before=store.last_stamp()), snapshot_every=50)
    journal.start()
    until(lambda: journal.num_commits)  # the thread has looked for windows that ended while nothing ran
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
    for _ in range(200):
        if journal.num_lessons:
            break
        threading.Event().wait(0.02)
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
    learn = policy.learn

    def breaks_off(lessons):
        learn(lessons)
        monkeypatch.undo()
        raise RuntimeError("broke off")

    new = ranked(live, "r1", request_of("q", "ab"))
    monkeypatch.setattr(policy, "learn", breaks_off)
    journal.write(type(new)(**{name: getattr(new, name) for name in new.__struct_fields__} | {"window": 10_000}))
    for _ in range(200):
        if journal.failure:
            break
        threading.Event().wait(0.02)
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
    journal._waiting.put((ranked(live, "r1", request_of("q", "ab")), answers.append))  # passed the check just before
    journal.stop()
    assert [type(answer) for answer in answers] == [UnavailableError]


def submitted(journal, *works):
    """Hand work over as the event loop does; the answers, in the order in which they come."""
    answers = []
    journal.submit_all([(work, answers.append) for work in works])
    return answers


def until(condition):
    for _ in range(500):
        if condition():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it did not happen")


def test_few_lists_are_committed_by_who_hands_them_over(running):
    store, live, journal = running
    used_by = []
    commit_soon = store.commit_soon
    store.commit_soon = lambda work, *, now: used_by.append(threading.current_thread()) or commit_soon(work, now=now)
    answers = submitted(journal, *(ranked(live, f"r{number}", request_of("q", "ab")) for number in range(20)))
    assert [answer.shown.ranking_id for answer in answers] == [f"r{number}" for number in range(20)]
    assert used_by == [threading.current_thread()]
    assert store.last_seq() == 20


def test_many_events_are_left_to_the_thread(running):
    _, live, journal = running
    submitted(journal, ranked(live, "r1", request_of("q", "ab")))
    many = events(*(click(f"e{number}", "r1", "a") for number in range(MOST_IN_LOOP + 1)))
    answers = submitted(journal, many)
    until(lambda: answers)
    assert answers == [["accepted"] * (MOST_IN_LOOP + 1)]


def test_more_than_one_transaction_of_lists_are_stored_in_their_order(running):
    _, live, journal = running
    names = [f"r{number:04d}" for number in range(2 * MOST_IN_LOOP + 5)]
    answers = submitted(journal, *(ranked(live, name, request_of("q", "ab")) for name in names))
    until(lambda: len(answers) == len(names))
    assert [answer.shown.ranking_id for answer in answers] == names
    assert [answer.seq for answer in answers] == sorted(answer.seq for answer in answers)


def test_while_another_process_writes_the_thread_waits_and_not_the_event_loop(running):
    store, live, journal = running
    other = SqliteStore(store.path, role="keys", check="none")
    other._connection.execute("BEGIN IMMEDIATE")
    answers = submitted(journal, ranked(live, "r1", request_of("q", "ab")))  # returns at once
    assert answers == []
    other._connection.execute("ROLLBACK")
    other.close()
    until(lambda: answers)
    assert answers[0].shown.ranking_id == "r1"


def test_what_comes_while_the_thread_is_at_work_is_stored_when_it_is_done(running):
    _, live, journal = running
    with journal._writing:  # as the thread has it while it works
        answers = submitted(journal, ranked(live, "r1", request_of("q", "ab")))
        assert answers == []
        assert journal.num_waiting == 1
    journal.write(events())  # the thread does something, and says when it is done
    until(lambda: answers)
    assert (answers[0].shown.ranking_id, journal.num_waiting) == ("r1", 0)


@pytest.mark.parametrize("fails", ["before", "after"])
def test_a_commit_that_fails_in_the_event_loop_is_tried_again_by_the_thread(running, fails):
    """Whether it was on disk or not: it is stored once and learned once."""
    store, live, journal = running
    submitted(journal, ranked(live, "r1", request_of("q", "ab")))
    commit_soon = store.commit_soon

    def broken(work, *, now):
        store.commit_soon = commit_soon
        if fails == "after":
            commit_soon(work, now=now + 10**9)  # all windows end
        raise UnavailableError("the disk did not answer")

    store.commit_soon = broken
    answers = submitted(journal, events(click("e1", "r1", "a")))
    until(lambda: answers)
    assert answers == [["accepted"] if fails == "before" else ["duplicate"]]
    journal.stop()
    assert store.check()["events"] == 1
    for found in replay(store, policy_of):
        assert found.is_equal
        if found.last_lesson:
            assert live.named(None).state_hash() == (found.last_lesson, found.state_sha256)


def test_what_is_held_when_it_ends_is_refused(running):
    _, live, journal = running
    journal._writing.acquire()
    answers = submitted(journal, ranked(live, "r1", request_of("q", "ab")))
    journal._writing.release()
    journal.stop()
    assert [type(answer) for answer in answers] == [UnavailableError]


def test_windows_end_without_the_thread_while_lists_come(running):
    _, live, journal = running
    for number in range(50):
        new = ranked(live, f"r{number}", request_of("q", "ab"))
        submitted(
            journal, type(new)(**{name: getattr(new, name) for name in new.__struct_fields__} | {"window": 1_000})
        )
        threading.Event().wait(0.002)
    assert journal.num_lessons > 0


def test_a_list_whose_commit_failed_after_it_was_on_disk_is_found_again_by_the_thread(running):
    """The id is one that the service has just made, which no transaction looks up; this one must."""
    store, live, journal = running
    commit_soon = store.commit_soon

    def broken(work, *, now):
        store.commit_soon = commit_soon
        commit_soon(work, now=now)
        raise UnavailableError("the disk did not answer")

    store.commit_soon = broken
    works = [ranked(live, name, request_of("q", "ab")) for name in ("r1", "r2")]
    answers = submitted(journal, *(msgspec.structs.replace(new, has_fresh_id=True) for new in works))
    until(lambda: len(answers) == 2)
    assert [answer.shown.ranking_id for answer in answers] == ["r1", "r2"]
    assert store.last_seq() == 2


def test_the_last_snapshots_wait_for_a_commit_of_the_event_loop(running):
    store, live, journal = running
    users, most = [], []

    def used(function):
        def use(*given, **named):
            users.append(threading.current_thread())
            most.append(len(users))
            threading.Event().wait(0.2)
            try:
                return function(*given, **named)
            finally:
                users.remove(threading.current_thread())

        return use

    new = ranked(live, "r1", request_of("q", "ab"))
    submitted(journal, msgspec.structs.replace(new, window=1))
    journal.write(events())  # the window has ended: there is something to keep
    store.commit_soon, store.save_snapshot = used(store.commit_soon), used(store.save_snapshot)
    stopping = threading.Thread(target=journal.stop)
    commit_soon = store.commit_soon

    def stopped_meanwhile(work, *, now):
        stopping.start()
        return commit_soon(work, now=now)

    store.commit_soon = stopped_meanwhile
    answers = submitted(journal, ranked(live, "r2", request_of("q", "ab")))
    stopping.join()
    assert [answer.shown.ranking_id for answer in answers] == ["r2"]
    assert most == [1, 1]


def test_what_the_event_loop_leaves_to_a_thread_that_has_ended_is_refused(running):
    store, live, journal = running
    stopping = threading.Thread(target=journal.stop)

    class Writing:
        """After its release the event loop has to wait for its turn."""

        def __init__(self, lock):
            self.acquire, self._lock = lock.acquire, lock

        def release(self):
            self._lock.release()
            if threading.current_thread() is threading.main_thread():
                stopping.join(0.5)

        def __enter__(self):
            self.acquire()

        def __exit__(self, *failure):
            self.release()

    def none_meanwhile(work, *, now):
        stopping.start()
        journal._thread.join(0.3)

    journal._writing = Writing(journal._writing)
    store.commit_soon = none_meanwhile
    answers = submitted(journal, ranked(live, "r1", request_of("q", "ab")))
    stopping.join()
    until(lambda: answers)
    assert [type(answer) for answer in answers] == [UnavailableError]


def test_what_is_handed_over_at_the_moment_of_the_end_is_refused(tmp_path):
    """It passed the check just before."""
    store = SqliteStore(tmp_path / "service.db")
    live, calls = live_policies(store, {"default": BANDIT}), []
    journal = Journal(store, live, Clock(not_before=store.last_stamp()), call=calls.append)
    journal.start()
    until(lambda: journal.num_commits)
    refusal = journal._refusal

    def ends_after_the_check():
        found = refusal()
        stopping = threading.Thread(target=journal.stop)
        stopping.start()
        stopping.join()
        return found

    journal._refusal = ends_after_the_check
    answers = submitted(journal, ranked(live, "r1", request_of("q", "ab")))
    for called in calls:  # as the event loop does in its next turn
        called()
    store.close()
    assert [type(answer) for answer in answers] == [UnavailableError]
