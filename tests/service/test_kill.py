"""kill -9 under load: nothing that was acknowledged is lost, and nothing is applied twice.

``python -m tests.service.test_kill 1000`` kills a thousand times. Every check reads the whole log, so each fifty kills have a database of
their own: a file, then a PostgreSQL database that is now and then restarted, as after a crash or politely, while the server runs on. With
``sqlite`` or ``postgres`` after the number, all have that kind.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

from rankpolicy.service.log import open_store
from rankpolicy.service.log.replay import replay
from tests.service.parts import policy_of
from tests.service.postgres.cluster import Cluster, running_cluster

KILLS_PER_DATABASE = 50

LOAD = """
import asyncio, itertools, os, sys, threading
from rankpolicy.service.domain.clock import Clock
from rankpolicy.service.errors import UnavailableError
from rankpolicy.service.log.journal import Journal
from rankpolicy.service.log import open_store
from rankpolicy.service.log.writer import Writer
from tests.service.parts import BANDIT, NewRanking, click, events, live_policies, ranked, request_of

def said(line):  # one write per line, so that a line is whole or not there
    os.write(1, (line + chr(10)).encode())

async def written(journal, work):
    while True:
        outcome = asyncio.get_running_loop().create_future()
        journal.submit_all([(work, outcome.set_result)])
        stored = await outcome
        if not isinstance(stored, UnavailableError):
            return stored
        await asyncio.sleep(0.02)  # the database is being restarted; a client sends it again

async def client(journal, live, name):
    for turn in itertools.count():
        ranking_id = f"{sys.argv[2]}-{name}-{turn}"
        new = ranked(live, ranking_id, request_of(f"q{turn % 7}", "abcdefgh"))
        new = NewRanking(**{field: getattr(new, field) for field in new.__struct_fields__} | {"window": 20_000})
        shown = (await written(journal, new)).shown.items
        said(f"ranking {ranking_id}")
        clicks = [click(f"{ranking_id}-{item}", ranking_id, item) for item in shown[::2]]
        more = [click(f"{ranking_id}-{number}", ranking_id, shown[0], type="view") for number in range(200 * (turn % 50 == 0))]
        fates = await written(journal, events(*clicks, *clicks[:1], *more))
        for event, fate in zip(clicks, fates):
            said(f"event {event.event_id} {fate}")
        await asyncio.sleep(0)

async def serve():
    store = open_store(sys.argv[1])
    live = live_policies(store, {"default": BANDIT})
    writer = Writer(sys.argv[1], locks=store.locks)
    said(f"process {writer._process.pid}")
    journal = Journal(store, live, Clock(not_before=store.last_stamp()), writer=writer, snapshot_every=100)
    journal.start(asyncio.get_running_loop())
    ranked(live, "warm", request_of("q", "ab"))  # loads compiled code
    await asyncio.gather(*[client(journal, live, name) for name in "xyz"])

threading.excepthook = lambda failure: (sys.__excepthook__(*failure[:3]), os._exit(1))
asyncio.run(serve())
"""


def kill_under_load(place: str, *, times: int, seed: int, cluster: Cluster | None = None) -> Counter[str]:
    """Kill a server so many times, now and then the process that writes its log or the database before it, and check after each.

    Returns how often each was killed or restarted, and the number of events that were acknowledged.
    """
    counts: Counter[str] = Counter()
    rng = random.Random(seed)
    rankings: set[str] = set()
    fates: dict[str, str] = {}
    for turn in range(times):
        command = [sys.executable, "-c", LOAD, place, str(turn)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline().split() for _ in range(rng.randrange(5, 200))]
            kills_writer = rng.random() < 0.3
            if kills_writer:
                os.kill(int(lines[0][1]), signal.SIGKILL)
                counts["writer killed"] += 1
                lines += [process.stdout.readline().split() for _ in range(rng.randrange(1, 100))]
            restarts_database = cluster is not None and rng.random() < 0.3
            if cluster is not None and restarts_database:
                end = rng.choice([cluster.crash, cluster.stop])
                end()
                counts[f"database {end.__name__}"] += 1
                cluster.start()
                lines += [process.stdout.readline().split() for _ in range(rng.randrange(100, 400))]
            assert all(lines), "the server ended by itself"
            time.sleep(rng.uniform(0, 0.02))  # the moment of the kill is what is tried
            process.kill()
            counts["server killed"] += 1
            lines += [line.split() for line in process.stdout if line.endswith("\n")]  # until both have ended
        rankings |= {words[1] for words in lines if words[0] == "ranking"}
        new = {words[1]: words[2] for words in lines if words[0] == "event"}
        _check(
            place, rankings, fates | new, committed_unheard=new.keys() if kills_writer or restarts_database else set()
        )
        fates |= {name: fate for name, fate in new.items() if fate != "duplicate"}
    counts["acknowledged events"] = len(fates)
    return counts


def _check(place: str, rankings: set[str], fates: dict[str, str], *, committed_unheard: Collection[str]) -> None:
    """Check a database; where the writer or the database ended after a commit, the events are sent again and are duplicates."""
    store = open_store(place)
    try:
        store.check()  # every lesson is what the events say, every row is there once
        rows = store.rows("SELECT event_id, fate FROM events")
        stored = dict(rows)
        assert len(stored) == len(rows)
        lost = fates.keys() - stored.keys()
        assert not lost, f"acknowledged events are lost: {sorted(lost)}"
        wrong = {name: (fate, stored[name]) for name, fate in fates.items() if stored[name] != fate}
        heard_again = {name for name, said in wrong.items() if said[0] == "duplicate" and name in committed_unheard}
        assert not wrong.keys() - heard_again, f"acknowledged events have another fate: {wrong}"
        assert all(store.ranking(name) is not None for name in rankings), "an acknowledged list is lost"
        (found,) = replay(store, policy_of)
        assert found.is_equal
        policy = policy_of(store.versions()[0])
        lessons = list(store.lessons(1))
        policy.learn(lessons)
        counts = policy._bandit._arrays()["counts"]
        # mp-ts observes whole lists. Keys of queries count lists in the column of clicks.
        clicks = sum(sum(lesson.clicks) for lesson in lessons)
        assert counts[:, 0].sum() == clicks + len(lessons), "a click was applied twice or not at all"
        assert counts[:, 1].sum() == sum(len(lesson.items) for lesson in lessons)
    finally:
        store.close()


def test_nothing_acknowledged_is_lost_and_nothing_is_applied_twice(place):
    counts = kill_under_load(place, times=int(os.environ.get("RANKPOLICY_KILLS", "3")), seed=0)
    assert counts["acknowledged events"] > 20


def test_nothing_acknowledged_is_lost_when_the_database_is_restarted(cluster):
    counts = kill_under_load(cluster.new_database(), times=2, seed=9, cluster=cluster)
    assert counts["acknowledged events"] > 20
    assert counts["database crash"] + counts["database stop"] > 0


def kill_many_times(kinds: list[str], *, times: int, seed: int) -> None:
    """Kill a server so many times, on databases of these kinds in turn, and say how often."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cluster = stack.enter_context(running_cluster()) if "postgres" in kinds else None
        for done in range(0, times, KILLS_PER_DATABASE):
            kills = min(KILLS_PER_DATABASE, times - done)
            if cluster is not None and kinds[done // KILLS_PER_DATABASE % len(kinds)] == "postgres":
                counts += kill_under_load(cluster.new_database(), times=kills, seed=seed + done, cluster=cluster)
            else:
                counts += kill_under_load(str(Path(folder) / f"service-{done}.db"), times=kills, seed=seed + done)
            print(", ".join(f"{number} {what}" for what, number in counts.items()), flush=True)
    print(f"{times} kills, none of {counts['acknowledged events']} acknowledged events lost, none applied twice")


if __name__ == "__main__":
    kill_many_times(sys.argv[2:] or ["sqlite", "postgres"], times=int(sys.argv[1]), seed=int(time.time()))
