"""Connections that dawdle, are half closed or send nonsense are answered with a 4xx or closed, and others do not notice."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

CODE = """
import sys
from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.http import bodies, patience
from rankpolicy.service.server import serve
patience.HEADER_SECONDS = bodies.LONGEST_WAIT = 0.5
serve(ServiceConfig(db=sys.argv[1], port=0), announce=lambda url: print(url.rpartition(":")[2], flush=True))
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
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
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
