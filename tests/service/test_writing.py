"""The process that writes the log: what it is sent, what it answers, and what happens when it or its server ends."""

import asyncio
import os
import signal
import socket
import threading

import msgspec
import pytest

from rankpolicy.service.clock import Clock
from rankpolicy.service.errors import ConflictError, DamagedStoreError, UnavailableError
from rankpolicy.service.journal import Journal
from rankpolicy.service.records import NewRanking, StoredRanking
from rankpolicy.service.replay import replay
from rankpolicy.service.sqlite import SqliteStore, opening
from rankpolicy.service.writing import Writer
from rankpolicy.service.writing.messages import ENCODER, Answer, Incoming, Order, committed_in, framed, order_in
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, WINDOW, click, events, live_policies, policy_of, ranked, request_of


@pytest.fixture
def server(tmp_path):
    """A store, its policies, and the process that writes for them."""
    store = SqliteStore(tmp_path / "service.db")
    live = live_policies(store, {"default": BANDIT})
    writer = Writer(str(store.path), locks=store.locks)
    yield store, live, writer
    writer.stop()
    store.close()


def new_list(live, name, items="abcd"):
    return ranked(live, name, request_of("q", items))


def soon(writer, *works, now=2_000):
    """Have works committed as the event loop does, one transaction each; what was done, or what failed."""

    async def all_of_them():
        loop, found = asyncio.get_running_loop(), []
        writer.serve(loop)
        for work in works:
            answer = loop.create_future()
            writer.commit_soon(work, now=now, done=answer.set_result)
            found.append(await asyncio.wait_for(answer, 20))
        if writer._soon.fileno() >= 0:
            loop.remove_reader(writer._soon)
        return found

    return asyncio.run(all_of_them())


def test_the_thread_and_the_event_loop_hear_what_the_store_would_say(server):
    store, live, writer = server
    first = new_list(live, "r1")
    assert writer.commit([first], now=1_000).outcomes == [first]
    work = [
        first,
        new_list(live, "r1", "dcba"),
        events(click("e1", "r1", "a"), click("e1", "r1", "a")),
        new_list(live, "r2"),
    ]
    work[1] = msgspec.structs.replace(work[1], request_hash=b"other")
    (committed,) = soon(writer, work)
    known, conflict, fates, second = committed.outcomes
    assert isinstance(known, StoredRanking)
    assert (known.shown, known.seq) == (first.shown, 1)
    assert isinstance(conflict, ConflictError)
    assert "was used before" in str(conflict)
    assert fates == ["accepted", "duplicate"]
    assert second is work[3]
    assert committed.next_deadline == 1_000 + WINDOW
    ended = writer.commit([], now=3_000 + WINDOW)
    assert [(lesson.items, list(lesson.clicks)) for lesson in ended.lessons] == [
        (first.shown.items, [int(name == "a") for name in first.shown.items]),
        (second.shown.items, [0] * len(second.shown.items)),
    ]
    assert store.check()["rankings"] == 2


@pytest.mark.parametrize("memo", [None, 3, "x", [1, [2.5, None]], {"a": {"b": [True, "\u00fc"]}}, b"\0\xff"])
def test_orders_arrive_as_they_were_sent(server, memo):
    _, live, _ = server
    new = new_list(live, "r1")
    shown = msgspec.structs.replace(new.shown, memo=memo, propensities=[0.1, 1e-300, 1 / 3], scores=None)
    order = Order(
        "commit", [msgspec.structs.replace(new, shown=shown), events(click("e", "r1", "a", value=0.1))], 7, True
    )
    assert order_in(ENCODER.encode(order)) == order


def test_failures_arrive_as_they_were_raised():
    for error in (UnavailableError, DamagedStoreError):
        message = ENCODER.encode(Answer(failure="no", failed=error.__name__))
        with pytest.raises(error, match="no"):
            committed_in(message, ())
    with pytest.raises(RuntimeError, match="odd"):
        committed_in(ENCODER.encode(Answer(failure="odd", failed="ZeroDivisionError")), ())


def test_messages_come_in_pieces_of_any_size():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    incoming = Incoming(ours)
    sent = [b"", b"a", bytes(range(256)) * 40]
    stream = b"".join(map(framed, sent))
    found = []
    for start in range(0, len(stream), 7):
        theirs.sendall(stream[start : start + 7])
        while (message := incoming.next()) is not None:
            found.append(message)
    assert found == sent
    theirs.close()
    with pytest.raises(EOFError):
        incoming.next()
    ours.close()


def test_an_order_that_no_buffer_holds_is_sent_all_the_same(server):
    store, live, writer = server
    large = [msgspec.structs.replace(new_list(live, f"r{number}"), request=b"x" * 1_000_000) for number in range(5)]
    (committed,) = soon(writer, large)
    assert committed.outcomes == large
    assert store.check()["rankings"] == 5


def test_when_the_process_is_killed_the_next_one_goes_on(server):
    store, live, writer = server
    writer.commit([new_list(live, "r1")], now=1_000)
    killed = writer._process
    killed.kill()
    killed.wait()
    with pytest.raises(UnavailableError, match="has ended"):
        writer.commit([new_list(live, "r2")], now=1_000)
    (failed,) = soon(writer, [new_list(live, "r3")])
    assert isinstance(failed, UnavailableError)
    writer.reopen()
    assert writer._process.pid != killed.pid
    assert soon(writer, [events(click("e1", "r1", "a"))])[0].outcomes == [["accepted"]]
    assert store.check()["events"] == 1


def test_a_server_whose_writer_is_killed_loses_nothing_and_refuses_nobody(server):
    store, live, writer = server

    async def served():
        loop = asyncio.get_running_loop()
        journal = Journal(store, live, Clock(not_before=store.last_stamp()), writer=writer)
        journal.start(loop)

        async def written(work):
            answer = loop.create_future()
            journal.submit_all([(work, answer.set_result)])
            return await asyncio.wait_for(answer, 30)

        for turn in range(60):
            if turn % 20 == 10:
                os.kill(writer._process.pid, signal.SIGKILL)
            shown = await written(new_list(live, f"r{turn}"))
            assert isinstance(shown, NewRanking | StoredRanking)
            assert await written(events(click(f"e{turn}", f"r{turn}", shown.shown.items[0]))) == ["accepted"]
        await asyncio.to_thread(journal.stop)

    asyncio.run(served())
    counts = store.check()
    assert (counts["rankings"], counts["events"]) == (60, 60)
    assert all(found.is_equal for found in replay(store, policy_of))


def test_the_database_stays_locked_until_the_process_has_ended(server, monkeypatch):
    monkeypatch.setattr(opening, "_LOCK_SECONDS", 0.05)
    store, live, writer = server
    writer.commit([new_list(live, "r1")], now=1_000)
    store.close()  # as the end of a server does
    with pytest.raises(RankPolicyError, match="in use by another server"):
        SqliteStore(store.path)
    writer.stop()
    SqliteStore(store.path).close()


def test_a_server_that_starts_waits_for_the_end_of_one_that_was_killed(server):
    store, _, writer = server
    store.close()
    ending = threading.Timer(0.3, writer.stop)
    ending.start()
    SqliteStore(store.path).close()
    assert writer._process.poll() == 0
    ending.join()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_signals_to_the_whole_group_are_left_to_the_server(server, ending):
    _, live, writer = server
    writer.commit([], now=1_000)  # it has started
    writer._process.send_signal(ending)
    assert writer.commit([new_list(live, "r1")], now=1_000).outcomes
    assert writer._process.poll() is None


def test_a_database_that_cannot_be_opened_is_named(tmp_path):
    writer = Writer(str(tmp_path / "missing" / "service.db"))
    with pytest.raises(UnavailableError, match="missing"):
        writer.commit([], now=1)
    writer.stop()
