"""The process that writes the log: what it is sent, what it answers, and what happens when it or its server ends."""

import asyncio
import errno
import fcntl
import os
import resource
import signal
import socket
import subprocess
import threading

import msgspec
import pytest

from rankpolicy.service.domain.clock import Clock
from rankpolicy.service.domain.records import NewRanking, StoredRanking
from rankpolicy.service.errors import ConflictError, DamagedStoreError, UnavailableError
from rankpolicy.service.learning.job_process import run_job
from rankpolicy.service.log import journal as journaling, writer as writing, writer_process as process
from rankpolicy.service.log.journal import Journal
from rankpolicy.service.log.replay import replay
from rankpolicy.service.log.sqlite import SqliteStore, database_file
from rankpolicy.service.log.writer import Writer
from rankpolicy.service.log.writer_process import ENCODER, Answer, Incoming, Order, committed_in, framed, order_in
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, WINDOW, click, events, live_policies, policy_of, ranked, request_of
from tests.waits import LONGEST_WAIT, wait_until


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
            found.append(await asyncio.wait_for(answer, LONGEST_WAIT))
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
            return await asyncio.wait_for(answer, LONGEST_WAIT)

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
    monkeypatch.setattr(database_file, "_LOCK_SECONDS", 0.05)
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
    is_ending = threading.Event()
    ending = threading.Timer(0.3, lambda: (is_ending.set(), writer.stop()))
    ending.start()
    SqliteStore(store.path).close()
    assert is_ending.is_set()
    assert writer._process.wait(LONGEST_WAIT) == 0
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


def test_what_cannot_be_sent_is_refused_and_the_rest_goes_on(server):
    """No message holds such a number; who waits for the others waits for nobody in vain."""
    store, live, writer = server
    odd = new_list(live, "odd")
    odd = msgspec.structs.replace(odd, shown=msgspec.structs.replace(odd.shown, memo=2**70))

    async def served():
        loop, journal = asyncio.get_running_loop(), journal_of(store, live, writer)
        journal.start(loop)
        answers = [loop.create_future() for _ in range(3)]
        pieces = [new_list(live, "r1"), odd, new_list(live, "r2")]
        journal.submit_all([(work, answer.set_result) for work, answer in zip(pieces, answers, strict=True)])
        found = await asyncio.wait_for(asyncio.gather(*answers), LONGEST_WAIT)
        await asyncio.to_thread(journal.stop)
        return found

    first, refused, second = asyncio.run(served())
    assert (first.shown.ranking_id, second.shown.ranking_id) == ("r1", "r2")
    assert isinstance(refused, OverflowError)
    assert store.check()["rankings"] == 2


def journal_of(store, live, writer):
    return Journal(store, live, Clock(not_before=store.last_stamp()), writer=writer)


def test_an_order_that_cannot_be_read_is_answered(server):
    _, live, writer = server
    writer.commit([], now=1_000)
    first = writer._process.pid
    with pytest.raises(RuntimeError, match="Expected"):
        writer.commit([msgspec.structs.replace(new_list(live, "r1"), version="one")], now=1_000)
    assert writer.commit([new_list(live, "r1")], now=1_000).outcomes
    assert writer._process.pid == first


def test_a_process_that_cannot_be_started_is_a_database_that_cannot_be_written(server, monkeypatch):
    _, live, writer = server
    writer.kill()
    writer._process.wait()

    def refuses(*args, **settings):
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", refuses)
        for _ in range(2):
            with pytest.raises(UnavailableError, match="temporarily unavailable"):
                writer.reopen()
    writer.reopen()
    assert writer.commit([new_list(live, "r1")], now=1_000).outcomes


def test_the_place_is_on_no_command_line(server):
    """The address of a PostgreSQL database holds a password, and everybody on the machine may list processes."""
    store, _, writer = server
    writer.commit([], now=1_000)
    assert "rankpolicy.service.log.writer_process" in writer._process.args
    assert not [word for word in writer._process.args if str(store.path) in word]


def test_signals_of_a_terminal_do_not_reach_it(server):
    """Not even while it imports modules, before it can ignore them."""
    _, _, writer = server
    assert os.getpgid(writer._process.pid) != os.getpgrp()


def test_modules_in_the_working_directory_are_not_imported(server, tmp_path, monkeypatch):
    store, _, _ = server
    for name in ("msgspec", "json"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('this is not {name}')")
    monkeypatch.chdir(tmp_path)
    writer = Writer(str(store.path))
    assert writer.commit([], now=1_000).outcomes == []
    writer.stop()
    assert run_job({"job": "check", "wanted": []}) == {}


def test_a_server_with_thousands_of_connections_can_start_it(server):
    """Sockets have large numbers then."""
    store, live, _ = server
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4_096, before[1]), before[1]))
    pairs = [socket.socketpair() for _ in range(2)]
    high = [socket.socket(fileno=fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, 1_500)) for _, theirs in pairs]
    thread = threading.Thread(target=process.write_for, args=(str(store.path), high))
    thread.start()
    try:
        pairs[0][0].settimeout(LONGEST_WAIT)
        pairs[0][0].sendall(framed(ENCODER.encode(Order("commit", [new_list(live, "r1")], 1_000))))
        assert committed_in(Incoming(pairs[0][0]).next(), [new_list(live, "r1")]).outcomes
    finally:
        for ours, theirs in pairs:
            ours.close()
            theirs.close()
        for end in high:
            end.shutdown(socket.SHUT_RDWR)
        thread.join()
        for end in high:
            end.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_end_waits_for_no_process_that_hangs(server, monkeypatch):
    """It is killed, and what it was given is committed by another, or refused."""
    store, live, writer = server
    monkeypatch.setattr(writing, "LONGEST_END", 0.2)
    monkeypatch.setattr(journaling, "LONGEST_END", 0.2)

    async def served():
        loop, journal = asyncio.get_running_loop(), journal_of(store, live, writer)
        journal.start(loop)
        first = loop.create_future()
        journal.submit_all([(new_list(live, "r1"), first.set_result)])
        await asyncio.wait_for(first, LONGEST_WAIT)
        writer._process.send_signal(signal.SIGSTOP)
        second = loop.create_future()
        journal.submit_all([(new_list(live, "r2"), second.set_result)])
        await asyncio.to_thread(wait_until, lambda: writer._done is not None)  # the process was sent it
        await asyncio.wait_for(asyncio.to_thread(journal.stop), LONGEST_WAIT)
        await asyncio.wait_for(second, LONGEST_WAIT)
        writer._process.send_signal(signal.SIGSTOP)
        await asyncio.wait_for(asyncio.to_thread(writer.stop), LONGEST_WAIT)

    hung = []
    guard = threading.Timer(LONGEST_WAIT / 2, lambda: (hung.append(writer._process.pid), writer._process.kill()))
    guard.start()
    asyncio.run(served())
    guard.cancel()
    assert not hung


def test_a_process_that_hangs_is_killed_and_who_waits_in_the_event_loop_is_answered(server, monkeypatch):
    store, live, writer = server

    async def served():
        loop, journal = asyncio.get_running_loop(), journal_of(store, live, writer)
        journal.start(loop)
        first, second = loop.create_future(), loop.create_future()
        journal.submit_all([(new_list(live, "r1"), first.set_result)])
        # this one, and the first look at the windows
        await asyncio.to_thread(wait_until, lambda: journal.num_commits >= 2)
        writer._process.send_signal(signal.SIGSTOP)
        with monkeypatch.context() as patched:
            patched.setattr(writing, "LONGEST_ORDER", 0.2)
            journal.submit_all([(new_list(live, "r2"), second.set_result)])
        assert (await asyncio.wait_for(second, LONGEST_WAIT)).shown.ranking_id == "r2"
        await asyncio.to_thread(journal.stop)

    asyncio.run(served())
    assert store.check()["rankings"] == 2


def test_a_process_that_hangs_is_killed_and_the_thread_is_answered(server):
    _, live, writer = server
    writer.commit([], now=1_000)
    hanging = writer._process
    hanging.send_signal(signal.SIGSTOP)
    writer._waiting.settimeout(0.2)
    with pytest.raises(UnavailableError, match="has ended"):
        writer.commit([new_list(live, "r1")], now=1_000)
    writer.reopen()
    assert hanging.poll() == -signal.SIGKILL
    assert writer.commit([new_list(live, "r1")], now=1_000).outcomes
