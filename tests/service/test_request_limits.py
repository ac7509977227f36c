"""What one request, one address or one stalled disk may take from all others: draws, waiting, connections, bytes, odd requests."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.domain.clock import Clock
from rankpolicy.service.domain.messages import Item, NewEvent, RankRequest
from rankpolicy.service.domain.records import Lesson
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.learning.live import LivePolicy
from rankpolicy.service.log.journal import Journal
from rankpolicy.service.log.replay import replay
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.policies import query_bandit
from rankpolicy.service.ranking_service import RankingService
from rankpolicy.types import RankPolicyError
from tests.service.parts import BANDIT, click, events, live_policies, policy_of, ranked, request_of
from tests.service.test_connections import BODY, HEAD, all_that_comes, connected
from tests.service.test_journal_beside import HandWriter, lists, submitted
from tests.waits import LONGEST_WAIT

CODE = """
import sys
from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.http import connection_limits
from rankpolicy.service.server import serve
connection_limits.MOST_CONNECTIONS = 8
serve(ServiceConfig(db=sys.argv[1], port=0), announce=lambda url: print(url.rpartition(":")[2], flush=True))
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    db = tmp_path_factory.mktemp("limits") / "service.db"
    with subprocess.Popen([sys.executable, "-c", CODE, str(db)], stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline())
        process.terminate()


@pytest.fixture
def live(tmp_path):
    store = SqliteStore(tmp_path / "service.db")
    yield live_policies(store, {"default": BANDIT}).named(None)
    store.close()


def test_no_lock_is_held_while_propensities_are_drawn(live, monkeypatch):
    drawing, may_end = threading.Event(), threading.Event()
    order = query_bandit.BanditPolicy.order

    def slow(policy, request, *, generator):
        if threading.current_thread() is thread:
            drawing.set()
            may_end.wait(60)
        return order(policy, request, generator=generator)

    monkeypatch.setattr(query_bandit.BanditPolicy, "order", slow)
    request = RankRequest(query="q", items=[Item(id="a"), Item(id="b")], propensity_draws=3)
    found = []
    thread = threading.Thread(
        target=lambda: found.append(live.order(request, generator=np.random.default_rng(0))), daemon=True
    )
    thread.start()
    assert drawing.wait(60)
    is_free = live._lock.acquire(blocking=False)
    may_end.set()
    thread.join(60)
    assert is_free
    assert found[0].propensity_draws == 3


class TakenLock:
    """A lock that another thread has; nobody may wait for it."""

    def acquire(self, blocking=True):
        assert not blocking
        return False

    def __enter__(self):
        raise AssertionError("the event loop waits for a lock")

    def __exit__(self, *error):
        """It was never entered."""


def test_the_event_loop_does_not_wait_for_the_lock_of_a_policy(live):
    live._lock = TakenLock()
    assert live.order_soon(request_of("q", "ab"), generator=np.random.default_rng(0)) is None


@pytest.mark.parametrize("kind", ["bandit", "contextual", "interleaved", "apprentice"])
def test_a_frozen_policy_orders_as_its_policy_did_whatever_is_learned_later(tmp_path, kind):
    of = {"kind": "bandit", "bandit": "mp-ts"}
    settings = {
        "bandit": of,
        "contextual": {"kind": "contextual", "num_features": 1},
        "interleaved": {"kind": "interleaved", "of": [of, {"kind": "given"}]},
        "apprentice": {"kind": "apprentice", "of": of},
    }[kind]
    store = SqliteStore(tmp_path / "service.db")
    live = live_policies(store, {"default": settings})
    items = [Item(id=name, features=[number / 3]) for number, name in enumerate("abc")]
    request = RankRequest(query="q", items=items)

    def learn(number):
        new = [ranked(live, f"{number}-{turn}", request) for turn in range(20)]
        clicks = events(*(click(f"e{one.shown.ranking_id}", one.shown.ranking_id, "c") for one in new))
        store.commit([*new, clicks], now=number)
        live.learn(store.commit([], now=number + 10**9).lessons)

    def orders(policy):
        return [policy.order(request, generator=np.random.default_rng(seed)) for seed in range(20)]

    learn(1)
    policy = live.named(None).policy
    frozen, before = policy.frozen(request), orders(policy)
    assert orders(frozen) == before
    learn(10**10)
    assert orders(frozen) == before
    assert policy.state() != frozen.state()
    store.close()


@pytest.mark.parametrize("draws", [0, 3])
def test_a_list_that_waits_too_long_for_its_turn_is_refused_and_not_ordered(tmp_path, monkeypatch, draws):
    from rankpolicy.service import ranking_service

    now, begun, may_end = [0.0], threading.Event(), threading.Event()
    clock = SimpleNamespace(monotonic=lambda: now[0], perf_counter_ns=time.perf_counter_ns)
    monkeypatch.setattr(ranking_service, "time", clock)
    ordered, order = [], LivePolicy.order

    def slow(live, request, *, generator):
        ordered.append(request.query)
        begun.set()
        may_end.wait(LONGEST_WAIT)
        return order(live, request, generator=generator)

    monkeypatch.setattr(LivePolicy, "order", slow)
    monkeypatch.setattr(LivePolicy, "order_soon", lambda *arguments, **options: None)
    config = ServiceConfig(db=str(tmp_path / "service.db"), list_seconds=60, queue_seconds=2.0)
    service = RankingService(config)

    async def served():
        service.start()
        requests = [RankRequest(query=name, items=[Item(id="a")], propensity_draws=draws) for name in "abc"]
        first = asyncio.create_task(service.rank(requests[0]))
        await asyncio.to_thread(begun.wait, LONGEST_WAIT)
        queue = (service._draws if draws else service._slow)._work_queue
        second = asyncio.create_task(service.rank(requests[1]))
        while queue.qsize() < 1:
            await asyncio.sleep(0)
        now[0] = 3.0
        third = asyncio.create_task(service.rank(requests[2]))
        while queue.qsize() < 2:
            await asyncio.sleep(0)
        may_end.set()
        answers = await asyncio.gather(first, second, third, return_exceptions=True)
        await asyncio.to_thread(service.stop)
        return answers

    first, second, third = asyncio.run(asyncio.wait_for(served(), LONGEST_WAIT))
    assert first.logged
    assert third.logged
    assert "more lists come than can be ordered" in str(second)
    assert (second.status, service.num_shed, ordered) == (503, 1, ["a", "c"])


def test_a_list_whose_budget_has_passed_leaves_the_queue(tmp_path, monkeypatch):
    begun, may_end, ordered, order = threading.Event(), threading.Event(), [], LivePolicy.order

    def slow(live, request, *, generator):
        ordered.append(request.query)
        begun.set()
        may_end.wait(LONGEST_WAIT)
        return order(live, request, generator=generator)

    monkeypatch.setattr(LivePolicy, "order", slow)
    config = ServiceConfig(db=str(tmp_path / "service.db"), list_seconds=60, rank_budget_seconds=0.05, queue_seconds=60)
    service = RankingService(config)

    async def served():
        service.start()
        answers = []
        for name in "abc":
            answers.append(await service.rank(RankRequest(query=name, items=[Item(id="a")], propensity_draws=1)))
            assert begun.wait(LONGEST_WAIT)
        stopping = asyncio.create_task(asyncio.to_thread(service.stop))  # waits for the one that has begun
        may_end.set()
        await stopping
        return answers

    answers = asyncio.run(asyncio.wait_for(served(), LONGEST_WAIT))
    assert [answer.mode for answer in answers] == ["fallback"] * 3
    assert ordered == ["a"]


def test_items_times_draws_are_bounded(tmp_path):
    service = RankingService(ServiceConfig(db=str(tmp_path / "service.db"), max_item_draws=100))
    request = RankRequest(query="q", items=[Item(id="a"), Item(id="b")], propensity_draws=51)
    with pytest.raises(RankPolicyError, match="at most 100; got 102"):
        service.submit_request(request, lambda outcome: None)
    service.stop()


def test_a_stalled_writer_gives_unlogged_lists_and_refuses_events(tmp_path):
    """The list that was being written is stored once its writer goes on, the one behind it is withdrawn; nothing is counted twice."""
    config = ServiceConfig(
        db=str(tmp_path / "service.db"), list_seconds=0.1, event_seconds=0.3, policies={"default": BANDIT}
    )
    service = RankingService(config)

    def request(name):
        return RankRequest(query="q", items=[Item(id="a"), Item(id="b")], ranking_id=name)

    async def served():
        service.start()
        assert (await service.rank(request("r1"))).logged
        while service.journal.num_commits < 2:
            await asyncio.sleep(0.01)
        service._writer._process.send_signal(signal.SIGSTOP)
        shown = await asyncio.wait_for(service.rank(request("r2")), 60)
        withdrawn = await asyncio.wait_for(service.rank(request("r3")), 60)
        event = NewEvent(event_id="e1", ranking_id="r2", item="a")
        with pytest.raises(UnavailableError, match=r"within 0\.3 seconds"):
            await asyncio.wait_for(service.take([event]), 60)
        while service.journal.problem is None:  # readiness: the oldest piece waits for longer than a second
            await asyncio.sleep(0.05)
        assert service.journal.oldest_seconds > 1
        service._writer._process.send_signal(signal.SIGCONT)
        while service.journal.problem is not None:
            await asyncio.sleep(0.01)
        again = await service.rank(request("r2"))
        fates = await service.take([event])
        await asyncio.to_thread(service.stop)
        return shown, withdrawn, again, fates

    shown, withdrawn, again, fates = asyncio.run(asyncio.wait_for(served(), 240))
    assert (shown.logged, withdrawn.logged, again.logged) == (False, False, True)
    assert (again.items, fates.accepted) == (shown.items, 1)
    store = SqliteStore(tmp_path / "service.db")
    assert (store.check()["rankings"], store.check()["events"]) == (2, 1)
    assert store.ranking("r3") is None
    assert all(found.is_equal for found in replay(store, policy_of))
    store.close()


def learned_in(tmp_path, settings, monkeypatch, *, taken=False, before=lambda policy: None):
    """The thread in which a list is learned while the event loop waits for nothing, and the answer after it."""
    store = SqliteStore(tmp_path / "service.db")
    live, writer = live_policies(store, {"default": settings}), HandWriter(store)
    threads, learn = [], query_bandit.BanditPolicy.learn

    def watched(policy, lessons):
        threads.append(threading.current_thread().name.rpartition("_")[0])
        learn(policy, lessons)

    monkeypatch.setattr(query_bandit.BanditPolicy, "learn", watched)

    async def served():
        journal = Journal(store, live, Clock(not_before=store.last_stamp()), writer=writer)
        journal.start(asyncio.get_running_loop())
        while not journal.num_commits:
            await asyncio.sleep(0.01)
        submitted(journal, *lists(live, "r1"))
        writer.finish()
        answers = submitted(journal, *lists(live, "r2"))
        policy = live.named(None)
        before(policy.policy)
        with policy._lock if taken else nullcontext():  # by a thread that copies the state
            writer.finish(later=10**9)
            assert not (taken and answers)
        while not answers:
            await asyncio.sleep(0.01)
        assert (answers[0].shown.ranking_id, writer.num_reopened) == ("r2", 0)
        await asyncio.to_thread(journal.stop)

    asyncio.run(asyncio.wait_for(served(), 60))
    store.close()
    return threads


def test_learning_waits_for_no_copy_of_the_state_in_the_event_loop(tmp_path, monkeypatch):
    assert learned_in(tmp_path, BANDIT, monkeypatch, taken=True) == ["rankpolicy learning"]


@pytest.mark.parametrize("why", ["table is full", "queries are forgotten", "neither"])
def test_a_table_is_made_anew_in_a_thread(tmp_path, monkeypatch, why):
    monkeypatch.setattr(query_bandit, "_SMALL", 0)

    def fill(policy):
        table = policy._bandit._table
        if why == "table is full":
            while table.has_room(4):  # keys of the list that will be learned
                learn(policy, [_lesson(policy.num_keys)])  # 3 keys
        elif why == "queries are forgotten":
            learn(policy, [_lesson(number) for number in range(1, 6)])

    learn = query_bandit.BanditPolicy.learn
    settings = BANDIT | ({"max_queries": 5} if why == "queries are forgotten" else {})
    in_loop = why == "neither"
    threads = learned_in(tmp_path, settings, monkeypatch, before=fill)
    assert [name == "rankpolicy learning" for name in threads] == [not in_loop]


def _lesson(number):
    return Lesson(seq=number, version=1, query=f"other {number}", items=["a", "b"], clicks=bytes(2))


def test_states_are_hashed_outside_the_event_loop(tmp_path, monkeypatch):
    from starlette.testclient import TestClient

    from rankpolicy.service.http.application import Application

    service = RankingService(ServiceConfig(db=str(tmp_path / "service.db")))
    in_loop, described = [], LivePolicy.described

    def watched(live):
        try:
            asyncio.get_running_loop()
            in_loop.append(True)
        except RuntimeError:
            in_loop.append(False)
        return described(live)

    monkeypatch.setattr(LivePolicy, "described", watched)
    with TestClient(Application(service), base_url="http://127.0.0.1", client=("127.0.0.1", 1)) as http:
        assert http.get("/v1/policies").status_code == 200
    assert set(in_loop) == {False}


def test_requests_that_waited_too_long_are_shed(tmp_path):
    service = RankingService(ServiceConfig(db=str(tmp_path / "service.db"), shed_seconds=1e-9))

    async def served():
        service.start()
        waiting = [asyncio.get_running_loop().create_future() for _ in range(64)]
        for future in waiting:
            service.check_load()
            service.submit_request(RankRequest(query="q", items=[Item(id="a")]), future.set_result)
        with pytest.raises(UnavailableError, match="more requests come"):
            service.check_load()  # the next request that the same turn of the event loop reads
        assert all([(await future).logged for future in waiting])
        service.check_load()
        await asyncio.to_thread(service.stop)

    asyncio.run(asyncio.wait_for(served(), 60))
    assert service.num_shed == 1


def test_requests_in_flight_have_a_bounded_size(tmp_path):
    from rankpolicy.service.http.application import Application

    config = ServiceConfig(db=str(tmp_path / "service.db"), max_megabytes_in_flight=1)
    service = RankingService(config)
    application = Application(service)
    body = b" " * 999_000 + BODY
    scope = {
        "path": "/v1/rank",
        "method": "POST",
        "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
    }

    async def served():
        service.start()
        first, statuses = asyncio.get_running_loop().create_future(), []
        application.answer(scope, body, lambda status, *more: first.set_result(status))
        application.answer(scope, body, lambda status, *more: statuses.append(status))
        assert statuses == [503]
        assert await first == 200
        again = asyncio.get_running_loop().create_future()
        application.answer(scope, body, lambda status, *more: again.set_result(status))
        assert await again == 200
        await asyncio.to_thread(service.stop)

    asyncio.run(asyncio.wait_for(served(), 60))


@pytest.mark.parametrize("path", ["/v1/rank", "/v1/rerank"])
def test_bytes_are_in_flight_from_when_they_come_not_when_they_are_announced(tmp_path, path):
    from rankpolicy.service.http.application import Application

    service = RankingService(ServiceConfig(db=str(tmp_path / "service.db"), list_seconds=60, max_megabytes_in_flight=1))
    application = Application(service)

    def scope(size):
        headers = {"host": "127.0.0.1", "content-type": "application/json", "content-length": str(size)}
        return {
            "type": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "method": "POST",
            "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }

    async def request(size, first_bytes):
        """A request that sends so many bytes of so many that it announces, and then nothing more; its messages and answers."""
        pieces, answers = asyncio.Queue(), []
        pieces.put_nowait({"type": "http.request", "body": bytes(first_bytes), "more_body": True})

        async def send(message):
            answers.append(message.get("status"))

        task = asyncio.create_task(application(scope(size), pieces.get, send))
        while not pieces.empty():
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return task, pieces, answers

    async def served():
        service.start()
        silent = [await request(999_000, 0) for _ in range(4)]
        sending, pieces, sent = await request(999_000, 900_000)
        assert not sending.done()
        refused, _, status = await request(999_000, 200_000)
        await refused
        assert status[0] == 503
        pieces.put_nowait({"type": "http.disconnect"})
        await sending
        assert sent[0] == 400
        again, _, _ = await request(999_000, 900_000)
        assert not again.done()  # what was refused and what broke off fills nothing
        for task, *_ in [*silent, (again,)]:
            task.cancel()
        await asyncio.gather(*(task for task, *_ in silent), again, return_exceptions=True)
        assert application._bytes_in_flight == 0
        await asyncio.to_thread(service.stop)

    asyncio.run(asyncio.wait_for(served(), LONGEST_WAIT))


def test_silent_connections_keep_nobody_out(port):
    silent = [connected(port) for _ in range(30)]
    try:
        for path in (b"/healthz", b"/v1/policies"):
            with connected(port) as connection:
                connection.sendall(b"GET %s HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n" % path)
                assert all_that_comes(connection).startswith(b"HTTP/1.1 200")
    finally:
        for connection in silent:
            connection.close()


def test_one_address_drops_only_its_own_silent_connections(port):
    def connected_from(address):
        return socket.create_connection(("127.0.0.1", port), 60, source_address=(address, 0))

    with connected_from("127.0.0.3") as silent_longest:
        others = [connected_from("127.0.0.2") for _ in range(20)]
        try:
            assert not all_that_comes(others[0])  # it was closed for a later one
            silent_longest.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            assert all_that_comes(silent_longest).startswith(b"HTTP/1.1 200")
        finally:
            for connection in others:
                connection.close()


def test_connections_leave_open_files_for_health_checks(tmp_path):
    """Where open files run out, a connection is closed before its first byte and no idle one makes room."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))" + CODE.replace("= 8", "= 1_024")
    silent = []
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "service.db")], stdout=subprocess.PIPE, text=True
    ) as process:
        port = int(process.stdout.readline())
        try:
            for address in ("127.0.0.2", "127.0.0.3", "127.0.0.4"):
                silent += [
                    socket.create_connection(("127.0.0.1", port), 60, source_address=(address, 0)) for _ in range(150)
                ]
            for path in (b"/healthz", b"/v1/policies"):
                with connected(port) as connection:
                    connection.sendall(b"GET %s HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n" % path)
                    assert all_that_comes(connection).startswith(b"HTTP/1.1 200")
        finally:
            for connection in silent:
                connection.close()
            process.terminate()


UPGRADE = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"


def test_a_wish_for_http_2_is_ignored(port):
    with connected(port) as connection:
        connection.sendall(HEAD + UPGRADE + b"\r\n" + BODY)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_a_half_closed_request_is_answered(port):
    with connected(port) as connection:
        connection.sendall(HEAD + b"\r\n" + BODY)
        connection.shutdown(socket.SHUT_WR)
        assert all_that_comes(connection).startswith(b"HTTP/1.1 200")


def test_a_wish_for_http_2_that_comes_in_pieces_is_ignored(port):
    head = HEAD + UPGRADE + b"\r\n"
    with connected(port) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in (head[:-90], head[-90:], BODY):
            connection.sendall(piece)
            time.sleep(0.1)  # so that the server reads it alone
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (b"/v1/policies", b"get, head"),
        (b"/healthz", b"get, head"),
        (b"/v1/rank", b"post"),
        (b"/login", b"get, head, post"),
    ],
)
def test_a_405_says_what_is_allowed(port, path, allowed):
    with connected(port) as connection:
        connection.sendall(b"DELETE %s HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n" % path)
        answer = all_that_comes(connection).lower()
    assert answer.startswith(b"http/1.1 405")
    assert b"\r\nallow: %s\r\n" % allowed in answer


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/rank", '{"query": "q", "query": "r", "items": [{"id": "a"}]}'),
        ("/v1/rank", '{"query": "q", "items": [{"id": "a", "id": "b"}]}'),
        ("/v1/rank", '{"query": "\\u003a", "query": "r", "items": [{"id": "a", "features": {"x": 1, "x": 2}}]}'),
        ("/v1/rank", '{"query": "q", "items": [{"id": "a"}], "user": null, "user": null}'),
        ("/v1/events", '{"event_id": "e", "ranking_id": "r", "item": "a", "item": "b"}'),
        ("/v1/events", '[{"event_id": "e", "ranking_id": "r", "item": "a", "item": "b"}]'),
        ("/v1/policies/default/promote", '{"version": 1, "version": 1}'),
    ],
)
def test_a_key_that_comes_twice_is_refused(port, path, body):
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    )
    with connected(port) as connection:
        connection.sendall(f"{head}connection: close\r\n\r\n{body}".encode())
        answer = all_that_comes(connection)
    assert answer.startswith(b"HTTP/1.1 400"), answer
    assert b"each key once" in answer


def test_colons_and_defaults_are_no_second_keys(port):
    body = json.dumps({"query": "a:b", "items": [{"id": ":"}], "user": None, "cutoff": 10}).encode()
    head = HEAD.replace(b"content-length: %d" % len(BODY), b"content-length: %d" % len(body))
    with connected(port) as connection:
        connection.sendall(head + b"\r\n" + body)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
