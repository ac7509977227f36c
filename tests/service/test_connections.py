"""Connections that dawdle, are half closed or send nonsense are answered with a 4xx or closed, and others do not notice."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import time

import pytest

from rankpolicy.service.json_log import log_line
from tests.waits import LONGEST_WAIT, wait_until

CODE = """
import sys
import time
from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.http import bodies, connection_limits
from rankpolicy.service.server import serve
connection_limits.HEADER_SECONDS = bodies.LONGEST_WAIT = 0.5
serve(ServiceConfig(db=sys.argv[1], port=0, list_seconds=60), announce=lambda url: print(url.rpartition(":")[2], flush=True))
"""
BODY = json.dumps({"query": "q", "items": [{"id": "a"}, {"id": "b"}]}).encode()
HEAD = b"POST /v1/rank HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % len(
    BODY
)


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    db = tmp_path_factory.mktemp("connections") / "service.db"
    with subprocess.Popen([sys.executable, "-c", CODE, str(db)], stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline())
        process.terminate()


def connected(port):
    made = socket.create_connection(("127.0.0.1", port), timeout=LONGEST_WAIT)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def all_that_comes(connection):
    """Everything until the server closes the connection; a server that never does is a time-out, and an error."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def wait_until_read(port):
    """The server has read what was sent to it before: its event loop answers what comes later."""
    with connected(port) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        assert all_that_comes(connection).startswith(b"HTTP/1.1 200")


def is_served(port):
    with connected(port) as connection:
        connection.sendall(HEAD + b"connection: close\r\n\r\n" + BODY)
        return all_that_comes(connection).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("sent", [b"", b"P", HEAD, HEAD[:-2] + b"\r\nx: y"])
def test_headers_that_do_not_come_close_the_connection(port, sent):
    with connected(port) as connection:
        connection.sendall(sent)
        assert all_that_comes(connection) == b""
    assert is_served(port)


def test_one_byte_at_a_time_does_not_buy_time(port):
    with connected(port) as connection:
        connection.settimeout(0.05)
        came = None
        for byte in HEAD * 20:
            try:
                connection.sendall(bytes([byte]))
                came = connection.recv(100)
                break
            except TimeoutError:
                continue
            except OSError:
                came = b""
                break
        assert came == b""


def test_a_second_request_that_dawdles_is_closed_too(port):
    with connected(port) as connection:
        connection.sendall(HEAD + b"\r\n" + BODY)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.sendall(b"POST /v1/ra")
        all_that_comes(connection)


def test_a_body_that_does_not_come_is_a_408(port):
    with connected(port) as connection:
        connection.sendall(HEAD + b"\r\n" + BODY[:5])
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 408")


def test_endless_headers_are_cut_off(port):
    with connected(port) as connection:
        connection.sendall(HEAD)
        try:
            for number in range(2_000):
                connection.sendall(b"x-%d: %s\r\n" % (number, b"y" * 1_000))
        except OSError:
            pass  # closed while we were sending
        answer = all_that_comes(connection)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert is_served(port)


@pytest.mark.parametrize("sent", [HEAD[:30], HEAD + b"\r\n" + BODY[:5], HEAD + b"\r\n" + BODY])
def test_a_half_closed_connection_ends(port, sent):
    with connected(port) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = all_that_comes(connection)
        assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200"))
    assert is_served(port)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300),  # the start of TLS
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/rank HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/rank HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"\r\n\r\n\r\n" + b"\x00" * 1_000,
    ],
)
def test_nonsense_is_a_4xx_or_closed(port, sent):
    with connected(port) as connection:
        connection.sendall(sent)
        answer = all_that_comes(connection)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer[:200]
    assert is_served(port)


CHUNKED = HEAD.replace(b"content-length: %d" % len(BODY), b"transfer-encoding: chunked") + b"\r\n"


def answers_to(port, *parts, number=1):
    """Send parts that the server reads one by one; the answers as status lines and bodies."""
    with connected(port) as connection:
        reader = connection.makefile("rb")
        for part in parts:
            connection.sendall(part)
            wait_until_read(port)
        found = []
        for _ in range(number):
            status = int(reader.readline().split()[1])
            if status == 100:  # "go on", and a blank line
                reader.readline()
                status = int(reader.readline().split()[1])
            headers = dict(line.decode().strip().lower().split(": ", 1) for line in iter(reader.readline, b"\r\n"))
            found.append((status, headers, json.loads(reader.read(int(headers["content-length"])))))
        return found


@pytest.mark.parametrize(
    "parts",
    [
        (HEAD + b"\r\n" + BODY,),
        (HEAD + b"\r\n", BODY),
        (HEAD + b"\r\n" + BODY[:7], BODY[7:]),
        (HEAD + b"expect: 100-continue\r\n\r\n" + BODY,),
        (HEAD[:20], HEAD[20:] + b"\r\n" + BODY),
        (HEAD.replace(b"/v1/rank", b"/v1/rank?x=1") + b"\r\n" + BODY,),
        (CHUNKED, b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)),
    ],
)
def test_a_request_is_answered_alike_however_it_comes(port, parts):
    ((status, headers, answer),) = answers_to(port, *parts)
    assert status == 200
    assert headers["content-type"] == "application/json"
    assert "date" in headers
    assert "connection" not in headers
    assert sorted(item["id"] for item in answer["items"]) == ["a", "b"]
    assert answer["logged"]


def test_requests_sent_at_once_are_answered_in_their_order(port):
    def request(name, path=b"/v1/rank"):
        body = json.dumps({"ranking_id": name, "query": "q", "items": [{"id": name}]}).encode()
        head = b"POST %s HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        return head % (path, len(body)) + body

    page = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    sent = request("p1") + request("p2", b"/v1/nothing") + request("p3") + page + request("p1") + request("p4")
    found = answers_to(port, sent, number=6)
    assert [status for status, _, _ in found] == [200, 404, 200, 200, 200, 200]
    assert [answer.get("ranking_id") for _, _, answer in found] == ["p1", None, "p3", None, "p1", "p4"]


def test_a_refused_request_leaves_the_connection_open(port):
    bad = b'{"query": "q", "items": [{"id": "a"}, {"id": "a"}]}'
    head = b"POST %s HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n"
    kinds = [
        (b"/v1/rank", b"application/json", bad),
        (b"/v1/events", b"text/plain", b"{}"),
        (b"/v1/events", b"application/json", b"{"),
    ]
    sent = [head % (path, kind, len(body)) + body for path, kind, body in kinds]
    found = answers_to(port, *sent, HEAD + b"\r\n" + BODY, number=4)
    assert [status for status, _, _ in found] == [422, 415, 400, 200]
    assert "one twice" in found[0][2]["message"]


@pytest.mark.parametrize("head", [HEAD.replace(b"HTTP/1.1", b"HTTP/1.0"), HEAD + b"connection: close\r\n"])
def test_a_connection_that_shall_end_ends_after_its_answer(port, head):
    with connected(port) as connection:
        connection.sendall(head + b"\r\n" + BODY)
        answer = all_that_comes(connection)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"connection: close") == 1
    assert answer.endswith(b"}")


def test_the_metrics_count_requests_of_both_ways(port):
    def counted():
        with connected(port) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            lines = all_that_comes(connection).decode().splitlines()
        return sum(
            float(line.split()[-1]) for line in lines if line.startswith('rankpolicy_requests_total{path="/v1/rank"')
        )

    before = counted()
    answers_to(port, HEAD + b"\r\n" + BODY)
    answers_to(port, HEAD + b"\r\n", BODY)
    assert counted() == before + 2


def request_for(item):
    """A request whose head is the same for every item of one letter."""
    body = json.dumps({"query": "q", "items": [{"id": item}]}).encode()
    head = b"POST /v1/rank HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


@pytest.mark.parametrize(
    "parts",
    [
        [request_for("b"), request_for("c")],
        [request_for("b")[:-5], request_for("b")[-5:], request_for("c")],  # the same head, and a body in two parts
        [request_for("b") + request_for("c")],  # two requests at once
        [request_for("b") + request_for("c")[:40], request_for("c")[40:]],
        [request_for("b") + request_for("c")[:-3], request_for("c")[-3:]],
        [b"\r\n" + request_for("b"), request_for("c")],
    ],
)
def test_a_head_that_came_before_is_followed_by_its_own_body(port, parts):
    found = answers_to(port, request_for("a"), *parts, number=3)
    assert [answer["items"][0]["id"] for _, _, answer in found] == ["a", "b", "c"]


def test_a_head_that_came_before_does_not_let_in_what_is_too_long_or_too_short(port):
    longer = request_for("a") + b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
    with connected(port) as connection:
        connection.sendall(request_for("a"))
        first = connection.recv(1 << 16)
        connection.sendall(longer)
        answers = first + all_that_comes(connection)
    assert answers.count(b'"ranking_id"') == 2
    assert b"<!doctype html>" in answers.lower()


def test_a_revoked_key_is_refused_on_a_connection_that_used_it(tmp_path):
    from rankpolicy.service.domain.keys import new_key
    from rankpolicy.service.log.sqlite import SqliteStore

    store = SqliteStore(tmp_path / "service.db")
    key, stored = new_key(["rank"])
    store.add_key(stored, now=1)
    store.add_key(new_key(["rank"])[1], now=2)  # without any key, this machine is served
    store.close()
    head, _, body = request_for("a").partition(b"\r\n\r\n")
    sent = head + b"\r\nauthorization: Bearer " + key.encode() + b"\r\n\r\n" + body
    line = [sys.executable, "-c", CODE, str(tmp_path / "service.db")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            with connected(int(process.stdout.readline())) as connection:

                def status():
                    connection.sendall(sent)
                    return int(connection.recv(1 << 16).split()[1])

                assert [status(), status(), status()] == [200, 200, 200]
                other = SqliteStore(tmp_path / "service.db", role="keys")
                assert other.revoke_key(stored.key_id, now=3)
                other.close()
                wait_until(lambda: status() == 401)
        finally:
            process.terminate()


def test_a_head_that_came_before_is_answered_only_when_it_has_come_whole(port):
    head = b"POST /v1/rank HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 0"
    rest = b"%d\r\n\r\n" % len(BODY) + BODY  # a longer number: another request
    (first, second) = answers_to(port, head + b"\r\n\r\n", head, rest, number=2)
    assert [first[0], second[0]] == [400, 200]


def test_many_refused_requests_do_not_close_the_connection(port):
    body = b'{"query": "%s"}' % (b"q" * 5_000)
    sent = HEAD.replace(b"content-length: %d" % len(BODY), b"content-length: %d" % len(body)) + b"\r\n" + body
    with connected(port) as connection:
        for _ in range(30):  # together more than the headers of one request may have
            connection.sendall(sent)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 422")
        for _ in range(8):  # together longer than the headers of one request may take
            time.sleep(0.1)  # the time that passes is what is tried
            connection.sendall(sent)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 422")


def test_an_answer_to_head_has_no_body(port):
    with connected(port) as connection:
        connection.sendall(b"HEAD /v1/rank HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
        answer = all_that_comes(connection)
    assert answer.startswith(b"HTTP/1.1 405")
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("failure", [BrokenPipeError, ValueError])
def test_a_log_that_nobody_reads_stops_nothing(monkeypatch, failure):
    """Who asked while something failed would get no answer otherwise."""

    class Broken(io.StringIO):
        def write(self, text):
            raise failure

    monkeypatch.setattr(sys, "stderr", Broken())
    log_line("a sentence")
