"""Group commit by another process: what the event loop hands over and hears, failures, the end."""

import threading

import msgspec
import pytest

from rankpolicy.service.domain.clock import Clock
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.log.journal import MOST_SOON, Journal
from rankpolicy.service.log.replay import replay
from rankpolicy.service.log.sqlite import SqliteStore
from tests.service.parts import (
    BANDIT,
    break_off_once,
    click,
    events,
    live_policies,
    policy_of,
    ranked,
    request_of,
    write,
)
from tests.waits import wait_until


class HandWriter:
    """A writer in this process that commits when it is told to."""

    def __init__(self, store):
        self.store, self.orders, self.num_reopened = store, [], 0
        self.commit = store.commit

    def serve(self, loop):
        """Nothing comes from another process."""

    def commit_soon(self, work, *, now, done):
        self.orders.append((work, now, done))

    def reopen(self):
        self.num_reopened += 1

    def finish(self, fails=None, *, later=0):
        """Do the first order; it may fail before it is on disk or after."""
        work, now, done = self.orders.pop(0)
        committed = None if fails == "before" else self.store.commit(work, now=now + later, urgent=True)
        done(committed if fails is None else UnavailableError("the disk did not answer"))


@pytest.fixture
def beside(tmp_path):
    store = SqliteStore(tmp_path / "service.db")
    live = live_policies(store, {"default": BANDIT})
    writer = HandWriter(store)
    journal = Journal(store, live, Clock(not_before=store.last_stamp()), writer=writer, snapshot_every=50)
    journal.start()
    wait_until(lambda: journal.num_commits)
    yield writer, live, journal
    if journal._thread.is_alive():
        journal.stop()
    store.close()


def submitted(journal, *works):
    """Hand work over as the event loop does; the answers, in the order in which they come."""
    answers = []
    journal.submit_all([(work, answers.append) for work in works])
    return answers


def lists(live, *names):
    return [ranked(live, name, request_of("q", "ab")) for name in names]


def test_what_comes_while_a_transaction_is_written_is_the_next(beside):
    writer, live, journal = beside
    first = submitted(journal, *lists(live, "r1", "r2"))
    second = submitted(journal, *lists(live, "r3")) + submitted(journal, *lists(live, "r4"))
    assert [len(work) for work, _, _ in writer.orders] == [2]
    assert journal.num_waiting == 2
    writer.finish()
    assert [answer.shown.ranking_id for answer in first] == ["r1", "r2"]
    assert [len(work) for work, _, _ in writer.orders] == [2]
    assert second == []
    writer.finish()
    assert (journal.num_waiting, writer.store.last_seq()) == (0, 4)


def test_the_next_transaction_is_written_while_the_last_is_answered(beside):
    writer, live, journal = beside
    orders_then = []
    journal.submit_all([(work, lambda answer: orders_then.append(len(writer.orders))) for work in lists(live, "r1")])
    submitted(journal, *lists(live, "r2"))
    writer.finish()
    assert orders_then == [1]
    writer.finish()


def test_more_than_one_transaction_of_lists_are_stored_in_their_order(beside):
    writer, live, journal = beside
    names = [f"r{number:04d}" for number in range(2 * MOST_SOON + 5)]
    answers = submitted(journal, *lists(live, *names))
    sizes = []
    while writer.orders:
        sizes.append(len(writer.orders[0][0]))
        writer.finish()
    assert sizes == [MOST_SOON, MOST_SOON, 5]
    assert [answer.shown.ranking_id for answer in answers] == names


def test_a_request_with_more_events_than_one_transaction_has_is_one(beside):
    writer, live, journal = beside
    many = events(*(click(f"e{number}", "r1", "a") for number in range(MOST_SOON + 1)))
    answers = submitted(journal, *lists(live, "r1"), many, *lists(live, "r2"))
    sizes = []
    while writer.orders:
        sizes.append(len(writer.orders[0][0]))
        writer.finish()
    assert sizes == [1, 1, 1]
    assert answers[1] == ["accepted"] * (MOST_SOON + 1)


def test_what_comes_while_the_thread_is_at_work_is_stored_when_it_is_done(beside):
    writer, live, journal = beside
    with journal._writing:  # as the thread has it while it works
        answers = submitted(journal, *lists(live, "r1"))
        assert (writer.orders, journal.num_waiting) == ([], 1)
    write(journal, events())  # the thread does something, and says when it is done
    wait_until(lambda: writer.orders)
    writer.finish()
    assert answers[0].shown.ranking_id == "r1"


@pytest.mark.parametrize("fails", ["before", "after"])
def test_a_transaction_that_fails_is_tried_again_by_the_thread(beside, fails):
    """Whether it was on disk or not: it is stored once and learned once."""
    writer, live, journal = beside
    submitted(journal, *lists(live, "r1"))
    writer.finish()
    answers = submitted(journal, events(click("e1", "r1", "a")))
    writer.finish(fails, later=10**9)  # all windows end
    wait_until(lambda: answers)
    assert answers == [["accepted"] if fails == "before" else ["duplicate"]]
    assert writer.num_reopened == 1
    journal.stop()
    assert writer.store.check()["events"] == 1
    for found in replay(writer.store, policy_of):
        assert found.is_equal
        if found.last_lesson:
            assert live.named(None).state_hash() == (found.last_lesson, found.state_sha256)


def test_a_list_whose_commit_failed_after_it_was_on_disk_is_found_again_by_the_thread(beside):
    """The id is one that the service has just made, which no transaction looks up; this one must."""
    writer, live, journal = beside
    works = [msgspec.structs.replace(new, has_fresh_id=True) for new in lists(live, "r1", "r2")]
    answers = submitted(journal, *works)
    writer.finish("after")
    wait_until(lambda: len(answers) == 2)
    assert [answer.shown.ranking_id for answer in answers] == ["r1", "r2"]
    assert writer.store.last_seq() == 2


def test_what_comes_after_a_failure_is_left_to_the_thread_until_the_log_was_read_again(beside):
    writer, live, journal = beside
    submitted(journal, *lists(live, "r1"))
    later = submitted(journal, *lists(live, "r2"))  # held
    writer.finish("before")
    assert writer.orders == []
    wait_until(lambda: later)
    assert later[0].shown.ranking_id == "r2"
    wait_until(lambda: not journal._begin_again)
    submitted(journal, *lists(live, "r3"))
    assert len(writer.orders) == 1
    writer.finish()


def test_lessons_that_cannot_be_learned_in_the_event_loop_are_learned_from_the_log(beside, monkeypatch):
    writer, live, journal = beside
    policy = live.named(None).policy
    submitted(journal, *lists(live, "r1"))
    writer.finish()
    break_off_once(policy, monkeypatch)
    answers = submitted(journal, *lists(live, "r2"))
    writer.finish(later=10**9)
    wait_until(lambda: answers)
    assert answers[0].shown.ranking_id == "r2"
    assert policy._bandit.counts_of("q", ["a", "b"])[:, 1].tolist() == [1, 1]


def test_after_a_snapshot_that_could_not_be_kept_the_database_is_opened_again(beside):
    """Another process commits, so nothing else would notice that this connection to the database is broken."""
    writer, live, journal = beside
    broken, writer.store = writer.store, SqliteStore(writer.store.path, role="writer")
    writer.commit = writer.store.commit
    journal._snapshot_every = 1
    submitted(journal, *lists(live, "r1"))
    writer.finish()
    broken._disconnect()
    submitted(journal, *lists(live, "r2"))
    writer.finish(later=10**9)  # all windows end, and a snapshot is wanted
    wait_until(lambda: journal._begin_again)
    answers = submitted(journal, *lists(live, "r3"))
    wait_until(lambda: answers)
    submitted(journal, *lists(live, "r4"))
    writer.finish(later=3 * 10**9)
    journal.stop()
    assert len(broken.snapshots(1)) == 1
    writer.store.close()


def test_what_is_held_when_it_ends_is_refused(beside):
    _, live, journal = beside
    with journal._writing:
        answers = submitted(journal, *lists(live, "r1"))
    journal.stop()
    assert [type(answer) for answer in answers] == [UnavailableError]


def test_the_end_waits_for_the_transaction_that_is_being_written(beside):
    writer, live, journal = beside
    submitted(journal, *lists(live, "r1"))
    writer.finish()
    answers, refused = submitted(journal, *lists(live, "r2")), submitted(journal, *lists(live, "r3"))
    stopping = threading.Thread(target=journal.stop)
    stopping.start()
    stopping.join(0.2)
    assert stopping.is_alive()
    writer.finish(later=10**9)
    stopping.join()
    assert answers[0].shown.ranking_id == "r2"
    assert [type(answer) for answer in refused] == [UnavailableError]
    (found,) = replay(writer.store, policy_of)
    assert list(found.snapshots.values()) == [True]  # of all that was learned


def test_the_end_waits_for_no_event_loop_that_has_ended(tmp_path):
    store = SqliteStore(tmp_path / "service.db")
    live, loop = live_policies(store, {"default": BANDIT}), HandLoop()
    journal = Journal(store, live, Clock(not_before=store.last_stamp()), writer=HandWriter(store))
    journal.start(loop)
    wait_until(lambda: journal.num_commits)
    submitted(journal, *lists(live, "r1"))  # and its answer never comes
    loop.closed = True
    journal.stop()
    assert not journal._thread.is_alive()
    store.close()


class HandLoop:
    """An event loop whose turns are made by hand."""

    def __init__(self):
        self.calls, self.closed = [], False

    def call_soon_threadsafe(self, function):
        self.calls.append(function)

    def call_later(self, seconds, function):
        """Nobody waits that long."""

    def is_closed(self):
        return self.closed


def test_what_is_handed_over_at_the_moment_of_the_end_is_refused(tmp_path):
    """It passed the check just before."""
    store = SqliteStore(tmp_path / "service.db")
    live, loop = live_policies(store, {"default": BANDIT}), HandLoop()
    journal = Journal(store, live, Clock(not_before=store.last_stamp()), writer=HandWriter(store))
    journal.start(loop)
    wait_until(lambda: journal.num_commits)
    refusal = journal._refusal

    def ends_after_the_check():
        found = refusal()
        stopping = threading.Thread(target=journal.stop)
        stopping.start()
        stopping.join()
        return found

    journal._refusal = ends_after_the_check
    answers = submitted(journal, *lists(live, "r1"))
    for called in loop.calls:
        called()
    store.close()
    assert [type(answer) for answer in answers] == [UnavailableError]
