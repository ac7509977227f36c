"""``rankpolicy serve --playground``: a real server, real requests, and users whose tastes are known."""

import json
import math
import random
import signal
import subprocess
import threading

import httpx
import pytest

from rankpolicy.service.domain.keys import new_key
from rankpolicy.service.log.sqlite import SqliteStore
from rankpolicy.service.playground import CUTOFF, Playground, World
from rankpolicy.types import RankPolicyError
from tests.service.dashboard.browser import served
from tests.service.test_end_to_end import command
from tests.waits import LONGEST_WAIT, wait_until


def best_share(world, query):
    """The probability of at least one click on the best list."""
    attraction = sorted((item.attraction for item in world.items[query]), reverse=True)[:CUTOFF]
    return 1 - math.prod(1 - probability for probability in attraction)


def test_clicks_of_users_have_the_probabilities_of_their_tastes():
    world, users = World(), random.Random(1)
    query = next(iter(world.items))
    best = sorted(world.items[query], key=lambda item: -item.attraction)[:CUTOFF]
    shown = [item.name for item in best]
    visits = [world.clicks(query, shown, users) for _ in range(4_000)]
    assert sum(map(bool, visits)) / 4_000 == pytest.approx(best_share(world, query), abs=0.03)
    assert sum(shown[0] in clicked for clicked in visits) / 4_000 == pytest.approx(best[0].attraction, abs=0.03)
    assert all([shown.index(name) for name in clicked] == sorted(map(shown.index, clicked)) for clicked in visits)
    assert World().items == World().items
    assert all(best_share(world, query) > 0.7 for query in world.items)


def test_users_ask_every_policy_and_leave_out_what_cannot_rank_their_items(tmp_path):
    policies = {"one": {"kind": "uniform"}, "two": {"kind": "given"}}
    reports = []
    with served(tmp_path / "a.db", policies=policies) as (url, application):
        users = Playground(url, [*policies, "missing"], rate=500, seed=3, report=reports.append)
        users.start()
        wait_until(lambda: users.num_visits >= 40)
        users.stop()
        wait_until(lambda: application.dashboard.statistics.document()["lists"] >= 40)
        found = application.dashboard.statistics.document()
    assert len(reports) == 1
    assert "missing" in reports[0]
    assert {one["policy"] for one in found["policies"]} == {"one", "two"}
    assert all(one["lists"] > 10 and one["clicks"] > 2 for one in found["policies"])
    assert {one["group"] for policy in found["policies"] for one in policy["groups"]} == {"marketplace", "own brand"}


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_an_impossible_rate_is_refused(rate):
    with pytest.raises(RankPolicyError, match="rate of the playground"):
        Playground("http://127.0.0.1:1", ["a"], rate=rate)


def test_the_command_serves_a_living_dashboard_also_where_keys_are_asked_for(tmp_path):
    store = SqliteStore(tmp_path / "playground.db", check="none")
    key, stored = new_key(["read"])
    store.add_key(stored, now=1)
    store.close()
    line = command("serve", "--playground", "--rate", 200, "--port", 0, "--seed", 1)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    rest = []
    # Who does not read what the process writes would stop it in the end.
    reader = threading.Thread(target=lambda: rest.append(process.stderr.read()))
    try:
        said = [process.stdout.readline() for _ in range(2)]
        assert "serving learning, uniform" in said[0]
        assert "200 simulated users per second" in said[1]
        url = said[1].split()[2].rstrip("/,")
        reader.start()

        def numbers():
            return httpx.get(f"{url}/v1/statistics", headers={"authorization": f"Bearer {key}"}).json()

        wait_until(lambda: numbers().get("lists", 0) > 100)
        found = numbers()
        assert found["events"]["accepted"] > 20
        assert found["rates"]["lists_per_second"] > 0
        assert httpx.get(url + "/").headers["location"] == "/login"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LONGEST_WAIT)
        if reader.is_alive():
            reader.join()
        process.stdout.close()
        process.stderr.close()
    assert process.returncode in (0, -signal.SIGTERM)
    assert [json.loads(line)["event"] for line in rest[0].splitlines()] == ["serving", "stopped"]
