"""The load generator, a process of its own: HTTP/1.1 over keep-alive connections, as many requests as are answered or at a fixed rate.

    python -m benchmarks.service.load HOST PORT PATH BODIES --seconds 5 --connections 64 [--rate 1000]

BODIES is a file with one request body per line, used in turn; @@@@@@@@@@@@ in a body is replaced by the number of the request. At a fixed
rate (open loop) requests start at random times that do not depend on answers, and a latency counts from the time at which the request
was due, so that a server which stalls is not spared.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import socket
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

MARK = b"@" * 12


@dataclass
class Load:
    """What came back: latencies in seconds and statuses."""

    latencies: list[float] = field(default_factory=list)
    latencies_of_200: list[float] = field(default_factory=list)
    unlogged: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0

    def as_json(self) -> str:
        if not self.latencies:
            raise SystemExit("no request was answered in time")
        number = len(self.latencies)
        summary = {"requests": number, "seconds": self.seconds, "per_second": number / self.seconds}
        summary |= {"milliseconds": _percentiles(self.latencies), "unlogged": self.unlogged}
        summary |= {"milliseconds_of_200": _percentiles(self.latencies_of_200), "statuses": dict(self.statuses)}
        return json.dumps(summary)

    def add(self, seconds: float, connection: Connection, status: int) -> None:
        self.latencies.append(seconds)
        self.statuses[status] += 1
        if status == 200:
            self.latencies_of_200.append(seconds)
            self.unlogged += b'"logged":false' in connection.received


def _percentiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    shares = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    return {name: 1000 * ordered[int(share * (len(ordered) - 1))] for name, share in shares.items()} if ordered else {}


def requests_of(path: str, bodies: list[bytes], start: int) -> Iterator[bytes]:
    """Requests as bytes, for ever."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: "
    made = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    for number in count(start):
        yield made[number % len(made)].replace(MARK, b"%012d" % number)


class Connection:
    """One keep-alive connection with at most one request on its way."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.started = 0.0
        self.received = b""

    def send(self, request: bytes, started: float) -> None:
        self.started, self.received = started, b""
        self.socket.sendall(request)

    def status(self) -> int | None:
        """Read what has come; the status once the answer is complete."""
        part = self.socket.recv(1 << 17)
        if not part:
            raise ConnectionError("the server closed a connection")
        self.received += part
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found:
            return None
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        return int(head[9:12]) if len(body) >= length else None


def closed_loop(address: tuple[str, int], requests: Iterator[bytes], *, connections: int, seconds: float) -> Load:
    """Every connection sends its next request as soon as it has an answer."""
    load, poll = Load(), select.epoll()
    by_number: dict[int, Connection] = {}
    for _ in range(connections):
        connection = Connection(address)
        by_number[connection.socket.fileno()] = connection
        poll.register(connection.socket.fileno(), select.EPOLLIN)
    start = time.perf_counter()
    for connection in by_number.values():
        connection.send(next(requests), time.perf_counter())
    while (now := time.perf_counter()) < start + seconds:
        for number, _ in poll.poll(1):
            connection = by_number[number]
            status = connection.status()
            if status is not None:
                now = time.perf_counter()
                load.add(now - connection.started, connection, status)
                connection.send(next(requests), now)
    load.seconds = now - start
    return load


def open_loop(
    address: tuple[str, int], requests: Iterator[bytes], *, connections: int, rate: float, seconds: float
) -> Load:
    """Requests start at random times, ``rate`` per second on average, over at most so many connections."""
    load, poll, rng = Load(), select.epoll(), random.Random(0)
    idle: list[Connection] = []
    busy: dict[int, Connection] = {}
    waiting: deque[float] = deque()
    start = due = time.perf_counter()
    while (now := time.perf_counter()) < start + seconds or busy or waiting:
        while due <= now and due < start + seconds:
            waiting.append(due)
            due += rng.expovariate(rate)
        while waiting and (idle or len(busy) < connections):
            connection = idle.pop() if idle else _registered(Connection(address), poll)
            busy[connection.socket.fileno()] = connection
            connection.send(next(requests), waiting.popleft())
        for number, _ in poll.poll(max(0.0, min(due - time.perf_counter(), 0.01))):
            connection = busy[number]
            status = connection.status()
            if status is not None:
                load.add(time.perf_counter() - connection.started, connection, status)
                idle.append(busy.pop(number))
    load.seconds = time.perf_counter() - start
    return load


def _registered(connection: Connection, poll: select.epoll) -> Connection:
    poll.register(connection.socket.fileno(), select.EPOLLIN)
    return connection


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("path")
    parser.add_argument("bodies", type=Path)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, help="64; with --rate 512 at most")
    parser.add_argument("--rate", type=float)
    parser.add_argument("--start", type=int, default=0, help="number of the first request")
    given = parser.parse_args()
    requests = requests_of(given.path, given.bodies.read_bytes().splitlines(), given.start)
    address = (given.host, given.port)
    if given.rate is None:
        load = closed_loop(address, requests, connections=given.connections or 64, seconds=given.seconds)
    else:
        connections = given.connections or 512
        load = open_loop(address, requests, connections=connections, rate=given.rate, seconds=given.seconds)
    print(load.as_json())


if __name__ == "__main__":
    main()
