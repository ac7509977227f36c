"""kill -9 while versions are promoted and rolled back: acknowledged changes are in force, lists are of the version that the log says.

``python -m tests.service.test_kill_promotion 100`` kills a hundred times.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rankpolicy.service.domain.deployments import deployments
from rankpolicy.service.log.replay import replay_choices
from rankpolicy.service.log.sqlite import SqliteStore
from tests.service.parts import live_policies
from tests.waits import LONGEST_WAIT, wait_until

CODE = """
import sys
from rankpolicy.service.config import ServiceConfig
from rankpolicy.service.server import serve
config = ServiceConfig(db=sys.argv[1], port=0, policies={"search": {"kind": "given"}})
serve(config, announce=lambda url: print(url.rpartition(":")[2], flush=True))
"""
CHANGES = [
    ("promote", 1, 0.5),
    ("promote", 1, 1.0),
    ("promote", 2, 0.3),
    ("rollback", None, 1.0),
    ("rollback", None, 1.0),
]


class Client:
    """Sends to a server until it is gone, and keeps what was acknowledged."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST_WAIT)
        self.acknowledged: list[Any] = []

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        self._connection.request("POST", path, json.dumps(document), {"content-type": "application/json"})
        answer = self._connection.getresponse()
        found: dict[str, Any] = json.loads(answer.read())
        assert answer.status in (200, 422), found  # 422: where a kill came in between, nothing is left to roll back
        return found if answer.status == 200 else {}

    def change(self) -> None:
        with suppress(OSError, http.client.HTTPException):
            for action, version, share in itertools.cycle(CHANGES):
                wanted = {} if version is None else {"version": version, "share": share}
                found = self.post(f"/v1/policies/search/{action}", wanted)
                if found:
                    self.acknowledged.append(found["action"])

    def has_acknowledged(self, number: int, sending: threading.Thread) -> bool:
        """Whether so many were acknowledged, or nothing more is sent."""
        return len(self.acknowledged) >= number or not sending.is_alive()

    def rank(self, turn: int) -> None:
        with suppress(OSError, http.client.HTTPException):
            for number in itertools.count():
                name = f"{turn}-{number}"
                found = self.post("/v1/rank", {"ranking_id": name, "query": "q", "items": [{"id": "a"}, {"id": "b"}]})
                self.acknowledged.append((name, found["policy_version"]))


def kill_while_promoting(path: Path, *, times: int, seed: int) -> tuple[int, int]:
    """Kill a server so many times while it changes what it serves; how many changes and lists were acknowledged."""
    rng = random.Random(seed)
    store = SqliteStore(path)
    for kind in ("uniform", "given"):  # two versions that may be promoted
        live_policies(store, {"search": {"kind": kind}})
    store.close()
    num_changes = num_lists = 0
    for turn in range(times):
        before = _checked(path, [], [], 0)
        with subprocess.Popen([sys.executable, "-c", CODE, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            changing, ranking = Client(port), Client(port)
            threads = [
                threading.Thread(target=changing.change),
                threading.Thread(target=ranking.rank, args=(turn,)),
            ]
            for thread in threads:
                thread.start()
            wait_until(partial(changing.has_acknowledged, rng.randrange(2, 12), threads[0]))
            time.sleep(rng.uniform(0, 0.02))  # the moment of the kill is what is tried
            process.kill()
            for thread in threads:
                thread.join()
        _checked(path, changing.acknowledged, ranking.acknowledged, before)
        num_changes += len(changing.acknowledged)
        num_lists += len(ranking.acknowledged)
    return num_changes, num_lists


def _checked(path: Path, changes: list[Any], lists: list[Any], before: int) -> int:
    """Check the database; the number of changes in it."""
    store = SqliteStore(path, check="full")
    try:
        store.check()
        stored = store.changes()  # each is whole, none is missing
        made: list[str] = [change.action for change in stored[before:]]
        assert made[: len(changes)] == changes
        assert not before or len(made) <= len(changes) + 1  # at most the one that was on its way
        deployments(stored)
        for name, version in lists:
            ranking = store.ranking(name)
            assert ranking is not None, "an acknowledged list is lost"
            assert ranking.shown.policy_version == version
        choices = replay_choices(store)
        assert choices.wrong == []
        return len(stored)
    finally:
        store.close()


def test_a_promotion_is_made_or_not_made(tmp_path):
    times = int(os.environ.get("RANKPOLICY_KILLS", "2"))
    changes, lists = kill_while_promoting(tmp_path / "service.db", times=times, seed=0)
    assert changes >= 2 * times
    assert lists > 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        found = kill_while_promoting(Path(made) / "service.db", times=int(sys.argv[1]), seed=int(time.time()))
    print(
        f"{sys.argv[1]} kills, {found[0]} acknowledged changes and {found[1]} lists, all in the log and consistent with it"
    )
