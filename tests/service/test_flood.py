"""A flood of damaged requests on a real server: no 5xx, no answer later than a second, memory that stays flat.

``python -m tests.service.test_flood 200000`` sends so many. On a machine that does other work too, the longest answer is told together with
the longest time that the disk took to sync a file beside the database, and the longest that a thread without work had to wait for its turn.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waits import LONGEST_WAIT

CODE = """
import sys
from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.server import serve
policies = {"default": {"kind": "bandit", "bandit": "epsilon-greedy"}, "own": {"kind": "given"}, "any": {"kind": "uniform"}}
config = ServiceConfig(db=sys.argv[1], port=0, window_seconds=0.5, policies=policies)
serve(config, announce=lambda url: print(url.rpartition(":")[2], flush=True))
"""
PIECES = [
    b"null",
    b"1e400",
    b"NaN",
    b"[[",
    b'"',
    b"{}",
    b"-",
    b"\\u0000",
    b"\\ud800",
    b",",
    b":",
    b"true",
    b"\xff",
    b"0" * 400,
]
PATHS = [
    "/v1/policies",
    "/metrics",
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/v1/rankings/r1",
    "/",
    "/v1/../etc/passwd",
]


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, int]]:
    """A server process: its port and its number."""
    command = [sys.executable, "-c", CODE, str(folder / "service.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
        process.terminate()


def documents(rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Requests that are right, and ones with a few changes."""
    policies = ["default", "own", "any", None, "none", "../../etc"]
    while True:
        names = [f"item {rng.randrange(40)}" for _ in range(rng.randrange(30))]
        rank = {"query": f"q{rng.randrange(9)}", "items": [{"id": name} for name in dict.fromkeys(names)]}
        rank |= {"cutoff": rng.choice([1, 10, 2_000, 0, -1, 10**9]), "policy": rng.choice(policies)}
        rank |= {"ranking_id": f"r{rng.randrange(500)}"} if rng.random() < 0.7 else {}
        event = {
            "event_id": f"e{rng.randrange(5_000)}",
            "ranking_id": f"r{rng.randrange(500)}",
            "item": f"item {rng.randrange(40)}",
        }
        path, document = rng.choice(
            [("/v1/rank", rank), ("/v1/events", event), ("/v1/events", [event] * rng.randrange(4))]
        )
        body = bytearray(json.dumps(document).encode())
        for _ in range(rng.choice([0, 0, 1, 2, 5])):
            place = rng.randrange(len(body) + 1)
            change = rng.random()
            if change < 0.4:
                body[place : place + 1] = bytes([rng.randrange(256)])
            elif change < 0.7:
                del body[place : place + rng.randrange(1, 9)]
            else:
                body[place:place] = rng.choice(PIECES)
        yield path, bytes(body)


def flood(port: int, process: int, *, requests: int, seed: int) -> tuple[Counter[int], float, list[int]]:
    """Send so many; statuses, the longest time to an answer in seconds, and kilobytes of memory along the way."""
    rng = random.Random(seed)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST_WAIT)
    statuses: Counter[int] = Counter()
    longest, memory = 0.0, []
    given = documents(rng)
    for number in range(requests):
        path, body = next(given)
        method = "POST"
        if rng.random() < 0.02:
            method, path = rng.choice(["GET", "PUT", "DELETE"]), rng.choice(PATHS)
        kind = "application/json" if rng.random() < 0.99 else "text/plain"
        start = time.perf_counter()
        connection.request(method, path, body, {"content-type": kind})
        answer = connection.getresponse()
        answer.read()
        longest = max(longest, time.perf_counter() - start)
        statuses[answer.status] += 1
        if number % max(1, requests // 10) == 0:
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            memory.append(int(next(line for line in lines if line.startswith("VmRSS")).split()[1]))
    connection.close()
    return statuses, longest, memory


class Witness(threading.Thread):
    """Syncs a small file again and again, as a commit does, and sleeps in between: what the machine alone takes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self._path, self._ending = folder / "witness", threading.Event()
        self.longest_sync = self.longest_wait = 0.0

    def run(self) -> None:
        with self._path.open("wb", buffering=0) as file:
            while not self._ending.is_set():
                start = time.perf_counter()
                file.write(bytes(4096))
                os.fsync(file.fileno())
                synced = time.perf_counter()
                time.sleep(0.02)  # how much later it wakes up is what is measured
                self.longest_sync = max(self.longest_sync, synced - start)
                self.longest_wait = max(self.longest_wait, time.perf_counter() - synced - 0.02)

    def stop(self) -> None:
        self._ending.set()
        self.join()


def test_damaged_requests_are_refused_and_right_ones_answered(tmp_path):
    with served(tmp_path) as (port, process):
        number = int(os.environ.get("RANKPOLICY_FLOOD", "1500"))
        statuses, _, memory = flood(port, process, requests=number, seed=0)
    assert not [status for status in statuses if status >= 500], statuses
    assert statuses[200] > 300
    assert statuses[400] > 100
    assert memory[-1] - memory[1] < 100_000


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, served(Path(made)) as (port, process):
        witness = Witness(Path(made))
        witness.start()
        statuses, longest, memory = flood(port, process, requests=int(sys.argv[1]), seed=int(time.time()))
        witness.stop()
    print(f"{sys.argv[1]} requests, statuses {dict(statuses)}, longest {longest:.3f} s, memory in kB {memory}")
    print(f"the machine alone: longest sync {witness.longest_sync:.3f} s, longest wait {witness.longest_wait:.3f} s")
