"""The whole loop through a real server: users click, a policy learns, a ranker is learned from the log, promoted, and taken back.

``RANKPOLICY_LOOP_LISTS`` sets how many random lists are shown. In a long run (15,000 or more) position bias must be within 5 % of the
truth; the short run of the suite allows for two standard errors more.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.service import Client
from rankpolicy.service.log.sqlite import SqliteStore
from tests.service.test_end_to_end import Server, command, has_learned, learned, replayed
from tests.waits import wait_until

pytest.importorskip("polars")
NUM_LISTS = int(os.environ.get("RANKPOLICY_LOOP_LISTS", "2500"))
NUM_TAUGHT, NUM_PAIRED = 600, 300
NUM_QUERIES, NUM_ITEMS, CUTOFF, SATISFIED = 8, 5, 3, 0.4
AT_ONCE, THREADS = 5, 6
CONFIG = """
window_seconds = 3.0
list_seconds = 60  # a busy machine

[policies.search]
kind = "given"

[policies.learning]
kind = "bandit"
bandit = "dcm-ts"

[policies.random]
kind = "uniform"

[policies.own]
kind = "given"

[[retrain]]
policy = "search"
method = "regression"
settings = { model = "linear" }
bias = "randomised"
bias_policy = "random"
days = 1
"""


class Users:
    """DCM users: an item is clicked if it is examined and attracts; after a click users are satisfied with one chance for all, and stop.

    Callers list the items of a query from the least attractive to the most attractive one.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        features = rng.uniform(-1, 1, (NUM_QUERIES, NUM_ITEMS, 2))
        order = np.argsort(features @ [0.3, -0.12], 1)
        self.features = np.take_along_axis(features, order[..., None], 1)
        self.attraction = 0.55 + self.features @ [0.3, -0.12]
        self.queries = [f"query {query}" for query in range(NUM_QUERIES)]
        self.items = [
            [{"id": f"{query}-{item}", "features": row.tolist()} for item, row in enumerate(rows)]
            for query, rows in enumerate(self.features)
        ]

    def clicks(self, number: int, query: int, shown: list[int]) -> list[int]:
        """Positions that a user clicks. Each user draws as often whatever is shown, so that two lists can be compared for the same user."""
        rng = np.random.default_rng([1, number])
        wants, stops = rng.random(NUM_ITEMS) < self.attraction[query], rng.random(CUTOFF) < SATISFIED
        clicked = []
        for position, item in enumerate(shown):
            if wants[item]:
                clicked.append(position)
                if stops[position]:
                    break
        return clicked

    def value(self, query: int, shown: list[int]) -> float:
        """Expected clicks on a list."""
        examined, total = 1.0, 0.0
        for item in shown[:CUTOFF]:
            attraction = self.attraction[query, item]
            total += examined * attraction
            examined *= 1 - attraction * SATISFIED
        return total

    def examination(self, num_users: int = 400_000) -> np.ndarray:
        """How likely each rank of a random list is examined, relative to the first."""
        rng = np.random.default_rng(2)
        query = rng.integers(NUM_QUERIES, size=(num_users, 1))
        shown = np.argsort(rng.random((num_users, NUM_ITEMS)), 1)[:, :CUTOFF]
        stops = rng.random(shown.shape) < self.attraction[query, shown] * SATISFIED
        return np.concatenate([[1.0], np.cumprod(1 - stops, 1)[:, :-1].mean(0)])

    def visits(self, client: Client, policy: str, numbers: range, tag: str = "") -> list[int]:
        """Each user sees a list of a policy and clicks; the number of clicks of each."""
        counts, events = [], []
        for number in numbers:
            query = number % NUM_QUERIES
            ranking_id = f"{policy} {tag}{number}"
            answer = client.rank(
                query=self.queries[query], items=self.items[query], cutoff=CUTOFF, policy=policy, ranking_id=ranking_id
            )
            shown = [item["id"] for item in answer["items"]]
            clicked = self.clicks(number, query, [int(name.split("-")[1]) for name in shown])
            events += [{"ranking_id": ranking_id, "item": shown[position]} for position in clicked]
            counts.append(len(clicked))
        answer = client.events(events)
        assert answer["accepted"] == len(events), answer
        return counts


def crowd(users: Users, url: str, policy: str, numbers: range, tag: str = "") -> list[int]:
    """Visits of many users at a time."""

    here = threading.local()

    def some(start: int) -> list[int]:
        if not hasattr(here, "client"):
            here.client = Client(url)
        return users.visits(here.client, policy, range(start, min(start + AT_ONCE, numbers.stop)), tag)

    with ThreadPoolExecutor(THREADS) as pool:
        return [count for part in pool.map(some, range(numbers.start, numbers.stop, AT_ONCE)) for count in part]


def paired_interval(first: list[int], second: list[int]) -> tuple[float, float]:
    differences = np.subtract(first, second, dtype=float)
    error = 1.96 * differences.std(ddof=1) / math.sqrt(len(differences))
    return differences.mean() - error, differences.mean() + error


def ran(*words: object) -> dict:
    done = subprocess.run(command(*words, "--json"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_loop_from_clicks_to_a_better_policy_and_back(tmp_path):
    users, db = Users(), tmp_path / "service.db"
    server = Server(tmp_path, config=CONFIG)
    try:
        random_clicks = crowd(users, server.url, "random", range(NUM_LISTS))
        crowd(users, server.url, "learning", range(NUM_TAUGHT))
        with Client(server.url) as client:
            wait_until_learned(client, range(NUM_TAUGHT))
        late = range(NUM_TAUGHT, NUM_TAUGHT + NUM_PAIRED)
        better = paired_interval(crowd(users, server.url, "learning", late), random_clicks[late.start : late.stop])
        assert better[0] > 0  # clicks per list more than random lists have, by the same users

        with Client(server.url) as client:
            wait_until_learned(client, late)
        ran("service", "export", "--db", db, "--policy", "random", "--out", tmp_path / "logs")
        bias = ran("clicks", "bias", tmp_path / "logs" / "lists.parquet", "--method", "randomised", "--resamples", 0)
        found = np.array(bias["methods"]["randomised"]["propensities"])
        chance = 0.0 if NUM_LISTS >= 15_000 else 2 * 1.5 / math.sqrt(NUM_LISTS)
        assert abs(found / users.examination() - 1).max() < 0.05 + chance

        (trained,) = ran("service", "retrain", "--config", tmp_path / "service.toml", "--db", db, "--now")["retrain"]
        assert trained["decision"] == "promoted", trained
        orders = orders_of(users, db, trained["model_sha256"], tmp_path)
        truth = np.mean([users.value(query, orders[query]) for query in range(NUM_QUERIES)])
        own = np.mean([users.value(query, list(range(NUM_ITEMS))) for query in range(NUM_QUERIES)])
        judged = trained["judged"]
        assert judged["estimate"]["interval"][0] < truth < judged["estimate"]["interval"][1]
        assert judged["against"]["interval"][0] < truth - own < judged["against"]["interval"][1]
        assert judged["refused"]["without propensities"] > 0  # those of Thompson sampling

        with Client(server.url) as client:
            wait_until(lambda: served_version(client) == 2)
            after = crowd(users, server.url, "search", range(NUM_PAIRED), "promoted ")
            before = crowd(users, server.url, "own", range(NUM_PAIRED))
            gained = paired_interval(after, before)
            assert gained[0] > 0
            assert client.rollback("search", detail="the end of the test")["version"] == 1
            answer = client.rank(query="query 0", items=users.items[0], cutoff=CUTOFF, policy="search")
            assert [item["id"] for item in answer["items"]] == ["0-0", "0-1", "0-2"]
            actions = [line["action"] for line in client.audit() if line["policy"] == "search"]
            assert actions == ["rollback", "promote", "retrain", "configure"]
            again = replayed(tmp_path)
            live = learned(client, again["policies"][0]["last_lesson"])
        assert again["is_equal"]
        assert again["choices"]["lists"] == NUM_LISTS + NUM_TAUGHT + 3 * NUM_PAIRED + 1
        assert again["policies"][0]["state_sha256"] == live["state_sha256"]
    finally:
        server.end(signal.SIGTERM)
    figures = {"learning - random": better, "bias": found.tolist(), "truth of bias": users.examination().tolist()}
    figures |= {"judged": judged, "true value": truth, "true difference": truth - own, "promoted - before": gained}
    (tmp_path / "figures.json").write_text(json.dumps(figures, default=float))


def orders_of(users: Users, db, sha256: str, folder) -> list[list[int]]:
    """What the promoted model shows for each query."""
    store = SqliteStore(db, role="reader", check="none")
    (folder / "promoted.rp").write_bytes(store.model(sha256))
    store.close()
    ranker = rp.load(folder / "promoted.rp")
    return [np.argsort(-ranker.predict(rows), kind="stable").tolist() for rows in users.features]


def served_version(client: Client) -> int:
    return {one["name"]: one["version"] for one in client.policies()}["search"]


def wait_until_learned(client: Client, numbers: range) -> None:
    """Until the windows of the lists of the policy "learning" have ended."""
    for number in numbers:
        wait_until(partial(has_learned, client, number))
