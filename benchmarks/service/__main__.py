"""`make bench-service`: one line per figure with its bar, and whether it holds; exit status 1 when one falls short.

All figures of a comparison come from one run on one machine, taken in turns. The load of the machine is printed with them: on a busy one
the ratios still mean something, the times do not.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.service.filled import fill, keep_snapshot, size_of
from benchmarks.service.servers import running
from rankpolicy.service.config import ServiceConfig
from rankpolicy.types import unknown_name

BANDIT = 'kind = "bandit"\nbandit = "epsilon-greedy"'  # its propensities are exact, and logged with every list
NUM_ITEMS = 25
NUM_GENERATORS, CONNECTIONS_OF_A_GENERATOR = 4, 180  # a server takes 768 connections from one address


class Bench:
    """A folder of configurations, bodies and databases, and how long each measurement runs."""

    def __init__(self, folder: Path, seconds: float, repeats: int, *, as_json: bool = False) -> None:
        self.folder, self.seconds, self.repeats, self.as_json = folder, seconds, repeats, as_json
        self.missed: list[str] = []
        self._number = 0

    def config(self, policy: str = BANDIT, *, window: float = 1.0, db: str | None = None) -> str:
        self._number += 1
        path = self.folder / f"{self._number}.toml"
        named = db or str(self.folder / f"{self._number}.db")
        path.write_text(f'db = "{named}"\nport = 0\nwindow_seconds = {window}\n[policies.default]\n{policy}\n')
        return str(path)

    def bodies(self, documents: list[Any]) -> str:
        self._number += 1
        path = self.folder / f"{self._number}.jsonl"
        path.write_text("\n".join(json.dumps(document) for document in documents))
        return str(path)

    def load(self, port: int, path: str, bodies: str, *, may_shed: bool = False, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(subprocess.check_output(_command(port, path, bodies, **more)))
        if list(found["statuses"]) != ["200"] and not may_shed:
            raise SystemExit(f"{path} answered {found['statuses']}")
        return found

    def loads(self, port: int, path: str, bodies: str, *, rate: float, **more: Any) -> list[dict[str, Any]]:
        """What several generators got that share a rate: one alone is not much faster than a server, so that requests would wait in it."""
        share = {"rate": rate / NUM_GENERATORS, "connections": CONNECTIONS_OF_A_GENERATOR}
        lines = [_command(port, path, bodies, **share, **more) for _ in range(NUM_GENERATORS)]
        running = [subprocess.Popen(line, stdout=subprocess.PIPE) for line in lines]
        return [json.loads(process.communicate()[0]) for process in running]

    def say(self, name: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        is_short = (at_least is not None and value < at_least) or (at_most is not None and value > at_most)
        bar = f"at least {at_least:g}" if at_least is not None else "" if at_most is None else f"at most {at_most:g}"
        verdict = ("SHORT" if is_short else "holds") if bar else ""
        self.missed += [name] if is_short else []
        load = round(os.getloadavg()[0], 1)
        if self.as_json:
            line = {"name": name, "value": value, "bar": bar, "verdict": verdict, "load": load}
            print(json.dumps(line), flush=True)
        else:
            print(f"{name:<62}{value:>12.4g}   {bar:<16}{verdict:<8}load {load:g}", flush=True)


def _command(port: int, path: str, bodies: str, **more: Any) -> list[str]:
    words = [word for name, value in more.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "benchmarks.service.load", "127.0.0.1", str(port), path, bodies, *words]


def rank_against_others(bench: Bench) -> None:
    """Lists per second of a bandit with a durable log, divided by those of an echo and of FastAPI."""
    items = [{"id": f"item-{number:05d}"} for number in range(NUM_ITEMS)]
    bodies = bench.bodies([{"query": f"query {number}", "items": items} for number in range(500)])
    rates: dict[str, list[float]] = {"echo": [], "ours": [], "fastapi": []}
    costs: dict[str, list[float]] = {"echo": [], "ours": [], "fastapi": []}
    for _ in range(bench.repeats):
        for kind in rates:
            with running(kind, bench.config()) as (port, process, _):
                bench.load(port, "/v1/rank", bodies, seconds=1)
                before = cpu_seconds(process)
                found = bench.load(port, "/v1/rank", bodies, seconds=bench.seconds)
                rates[kind].append(found["per_second"])
                costs[kind].append((cpu_seconds(process) - before) / found["requests"])
    for kind in rates:
        bench.say(f"{kind}: lists per second", statistics.median(rates[kind]))
        bench.say(f"{kind}: CPU microseconds per request", 1e6 * statistics.median(costs[kind]))
    of_echo = [ours / echo for ours, echo in zip(rates["ours"], rates["echo"], strict=True)]
    of_fastapi = [ours / other for ours, other in zip(rates["ours"], rates["fastapi"], strict=True)]
    bench.say("rank of 25 items / echo (0.45 is wished for)", statistics.median(of_echo), at_least=0.35)
    bench.say("rank of 25 items / FastAPI", statistics.median(of_fastapi), at_least=2.0)
    with running("ours", bench.config()) as (port, _, _):
        bench.load(port, "/v1/rank", bodies, seconds=1)
        half = statistics.median(rates["ours"]) / 2
        found = bench.load(port, "/v1/rank", bodies, seconds=2 * bench.seconds, rate=half)
        bench.say("rank of 25 items: p99 in ms at half load", found["milliseconds"]["p99"], at_most=5.0)


def overload(bench: Bench) -> None:
    """Lists offered at half and at twice the rate that saturates the server, whatever comes back: its table on the page of deployments."""
    items = [{"id": f"item-{number:05d}"} for number in range(NUM_ITEMS)]
    bodies = bench.bodies([{"query": f"query {number}", "items": items} for number in range(500)])
    with running("ours", bench.config()) as (port, _, _):
        bench.load(port, "/v1/rank", bodies, seconds=1, may_shed=True)
        saturation = bench.load(port, "/v1/rank", bodies, seconds=bench.seconds, may_shed=True)["per_second"]
    bench.say("saturation: lists per second", saturation)
    for share in (0.5, 2.0):
        with running("ours", bench.config()) as (port, _, _):
            bench.load(port, "/v1/rank", bodies, seconds=1, may_shed=True)
            results = bench.loads(port, "/v1/rank", bodies, rate=share * saturation, seconds=2 * bench.seconds)
        name, num_requests = f"{share:g} x saturation", sum(result["requests"] for result in results)
        num_lists, num_shed = (
            sum(result["statuses"].get(status, 0) for result in results) for status in ("200", "503")
        )
        latencies = [result["milliseconds_of_200"] for result in results]
        bench.say(f"{name}: requests answered per second", sum(result["per_second"] for result in results))
        bench.say(f"{name}: p50 in ms of lists", statistics.median(latency["p50"] for latency in latencies))
        bench.say(f"{name}: p99 in ms of lists, of the slowest generator", max(latency["p99"] for latency in latencies))
        bench.say(f"{name}: share answered with a list", num_lists / num_requests)
        bench.say(f"{name}: share shed (503)", num_shed / num_requests)
        num_unlogged = sum(result["unlogged"] for result in results)
        bench.say(f"{name}: share of lists that were not logged", num_unlogged / max(1, num_lists))


def network_latency(bench: Bench) -> None:
    """A PG-Rank network over 100 items of 20 features."""
    import numpy as np

    import rankpolicy as rp

    generator = np.random.default_rng(0)
    features = generator.normal(size=(2_000, 20))
    labels = (features[:, 0] + generator.normal(size=2_000) > 1).astype(float)
    ranker = rp.PGRank(epochs=1, random_state=0)
    ranker.fit(features, labels, qid=np.repeat(np.arange(20), 100), progress=False)
    ranker.save(bench.folder / "model.rp")
    items = [{"id": f"i{row}", "features": features[row].round(4).tolist()} for row in range(100)]
    bodies = bench.bodies([{"query": f"q{number}", "items": items} for number in range(20)])
    policy = f'kind = "ranker"\nmodel = "{bench.folder / "model.rp"}"'
    with running("ours", bench.config(policy)) as (port, _, _):
        bench.load(port, "/v1/rank", bodies, seconds=1)
        most = bench.load(port, "/v1/rank", bodies, seconds=bench.seconds)["per_second"]
        found = bench.load(port, "/v1/rank", bodies, seconds=2 * bench.seconds, rate=most / 2)
    bench.say("network over 100 x 20: requests per second", most)
    bench.say("network over 100 x 20: p99 in ms at half load", found["milliseconds"]["p99"], at_most=10.0)


def events(bench: Bench) -> None:
    """Clicks that are on disk when they are answered."""
    items = [{"id": f"item-{number}"} for number in range(10)]
    with running("ours", bench.config(window=3600)) as (port, _, _):
        names = [f"list-{number:06d}" for number in range(500)]
        lists = bench.bodies([{"ranking_id": name, "query": "q", "items": items} for name in names])
        bench.load(port, "/v1/rank", lists, seconds=2)
        event = {"event_id": "e@@@@@@@@@@@@", "item": "item-3"}
        single = bench.bodies([event | {"ranking_id": name} for name in names])
        found = bench.load(port, "/v1/events", single, seconds=bench.seconds)
        bench.say("events one per request, per second", found["per_second"], at_least=5_000)
        size = 500
        many = [
            [
                {"event_id": f"b@@@@@@@@@@@@-{place}", "item": "item-3", "ranking_id": names[place]}
                for place in range(size)
            ]
            for _ in range(8)
        ]
        found = bench.load(port, "/v1/events", bench.bodies(many), seconds=bench.seconds, connections=8)
        bench.say("events 500 per request, per second", size * found["per_second"], at_least=50_000)


def starting(bench: Bench) -> None:
    """Seconds until requests are taken, from nothing, and from a million events with and without a snapshot."""
    policy = 'kind = "bandit"\nbandit = "dcm-ts"'
    db = str(bench.folder / "big.db")
    config = ServiceConfig(db=db, policies={"default": {"kind": "bandit", "bandit": "dcm-ts"}})
    path, empty = bench.config(policy, db=db), bench.config(policy)
    fresh = []
    for _ in range(3):
        with running("ours", empty) as (_, process, ready):
            fresh.append(ready)
            small = memory_of(process)
            loaded = Path(f"/proc/{process}/maps").read_text()
    bench.say("start: seconds until ready", min(fresh), at_most=1.0)
    bench.say("start: torch is loaded", float("torch" in loaded), at_most=0.0)
    fill(config, num_lists=100_000, events_per_list=10)
    bench.say("a million events: megabytes of the database", size_of(db))
    copy = bench.folder / "copy.db"
    copy.write_bytes(Path(db).read_bytes())
    with running("ours", bench.config(policy, db=str(copy))) as (_, _, ready):
        bench.say("a million events, no snapshot: seconds beyond a fresh start", ready - min(fresh), at_most=5.0)
    keep_snapshot(config)
    times = []
    for _ in range(3):
        with running("ours", path) as (_, process, ready):
            times.append(ready - min(fresh))
            large = memory_of(process)
    bench.say("a million events, snapshot: seconds beyond a fresh start", min(times), at_most=0.3)
    bench.say("a million (query, item) pairs: megabytes resident", large)
    bench.say("the same, beyond a server that knows nothing", large - small)


def kernels(bench: Bench) -> None:
    """Microseconds of QueryBandit by itself."""
    from rankpolicy.bandits import QueryBandit

    bandit = QueryBandit(bandit="dcm-ts", cutoff=NUM_ITEMS)
    names = [f"item-{number:05d}" for number in range(NUM_ITEMS)]
    clicks = [0] * 24 + [1]
    bench.say("QueryBandit.rank of 25 texts: microseconds", _best(lambda: bandit.rank("q", names), 50), at_most=20.0)
    bench.say("QueryBandit.learn: microseconds", _best(lambda: bandit.learn("q", names, clicks), 50), at_most=20.0)
    texts = [[f"item-{(turn + number) % 500:05d}" for number in range(NUM_ITEMS)] for turn in range(200)]
    log = ([f"q{turn}" for turn in range(200)], texts, [clicks] * 200)
    each = _best(lambda: bandit.learn_log(*log), 1) / 200
    bench.say("QueryBandit.learn_log: microseconds per list", each, at_most=5.0)
    each = _best(lambda: bandit.rank_many(*log[:2]), 1) / 200
    bench.say("QueryBandit.rank_many: microseconds per list", each, at_most=5.0)


def _best(function: Any, calls: int) -> float:
    """The least of many short measurements: what it takes where nothing else runs."""
    function()
    times = []
    for _ in range(100):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        times.append((time.perf_counter() - start) / calls)
    return 1e6 * min(times)


def with_children(process: int) -> list[int]:
    """A server and the processes that it has started, such as the one that writes its log."""
    return [process, *map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]


def cpu_seconds(process: int) -> float:
    """CPU time that a server has used."""
    stats = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in with_children(process)]
    return sum(int(words[11]) + int(words[12]) for words in stats) / os.sysconf("SC_CLK_TCK")


def memory_of(process: int) -> float:
    """Megabytes of a server that are in memory."""
    lines = [Path(f"/proc/{one}/status").read_text().splitlines() for one in with_children(process)]
    return sum(int(next(line for line in of if line.startswith("VmRSS")).split()[1]) for of in lines) / 1000


PARTS = {
    "kernels": kernels,
    "rank": rank_against_others,
    "overload": overload,
    "network": network_latency,
    "events": events,
    "starting": starting,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}; all without any")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement under load")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON line per figure")
    given = parser.parse_args()
    for name in given.parts:
        if name not in PARTS:
            parser.error(unknown_name("part", name, PARTS))
    with tempfile.TemporaryDirectory(prefix="bench-service-") as folder:
        bench = Bench(Path(folder), given.seconds, given.repeats, as_json=given.json)
        start = time.perf_counter()
        for name in given.parts:
            PARTS[name](bench)
        print(
            f"{time.perf_counter() - start:.0f} seconds; short: {', '.join(bench.missed) or 'nothing'}", file=sys.stderr
        )
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
