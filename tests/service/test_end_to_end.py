"""A real server process and simulated users: it learns, survives restarts, and what it learned can be computed again."""

from __future__ import annotations

import json
import math
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from rankpolicy.service import Client
from tests.waits import LONGEST_WAIT, wait_until

CODE = "from rankpolicy.cli.main import main; main()"
CONFIG = """
window_seconds = 0.1
list_seconds = 60  # a busy machine
snapshot_every = 40

[policies.learning]
kind = "bandit"
bandit = "dcm-ts"

[policies.random]
kind = "uniform"
"""
ITEMS = [f"item {number}" for number in range(10)]
ATTRACTION = dict(zip(ITEMS, [0.05, 0.6, 0.05, 0.05, 0.6, 0.05, 0.05, 0.05, 0.6, 0.05], strict=True))
SATISFIED = 0.5


def command(*words: object) -> list[str]:
    return [sys.executable, "-c", CODE, *map(str, words)]


class Server:
    """``rankpolicy serve`` as a process on a free port."""

    def __init__(self, folder: Path, *words: str, config: str = CONFIG) -> None:
        (folder / "service.toml").write_text(config)
        db = folder / "service.db"
        line = command(
            "serve", "--config", folder / "service.toml", "--db", db, "--port", 0, "--seed", 1, "--json", *words
        )
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        document = ""
        while not document.endswith("}\n"):
            line_read = self.process.stdout.readline()
            assert line_read, "the server ended before it was ready"
            document += line_read
        self.url = json.loads(document)["url"]

    def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait(LONGEST_WAIT)
        assert self.process.stdout is not None
        self.process.stdout.close()


def clicks_of(shown: list[str], user: random.Random) -> list[str]:
    """Clicks of a DCM user. Each user draws as often whatever is shown, so that two lists can be compared for the same user."""
    wants = {item: user.random() < ATTRACTION[item] for item in ITEMS}
    stops = [user.random() < SATISFIED for _ in ITEMS]
    clicked = []
    for item, stop in zip(shown, stops, strict=False):
        if wants[item]:
            clicked.append(item)
            if stop:
                break
    return clicked


def visit(client: Client, number: int) -> float:
    """One user sees a list of each policy; the difference in whether anything was clicked."""
    has_clicked = {}
    for policy in ("learning", "random"):
        shown = client.rank(query="shoes", items=ITEMS, cutoff=3, policy=policy, ranking_id=f"{policy} {number}")
        clicked = clicks_of([item["id"] for item in shown["items"]], random.Random(number))
        for item in clicked:
            assert client.click(shown, item)["rejected"] == []
        has_clicked[policy] = bool(clicked)
    return float(has_clicked["learning"]) - float(has_clicked["random"])


def replayed(folder: Path) -> dict:
    done = subprocess.run(
        command("service", "replay", "--db", folder / "service.db", "--json"),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def has_learned(client: Client, number: int) -> bool:
    """Whether the policy "learning" has learned from the list of a user."""
    return bool(client.ranking(f"learning {number}")["learned"])


def learned(client: Client, last_lesson: int) -> dict:
    """The policy "learning" once it has learned this lesson."""

    def learning() -> dict:
        return {policy["name"]: policy for policy in client.policies()}["learning"]

    wait_until(lambda: learning()["last_lesson"] >= last_lesson)
    return learning()


def test_users_click_more_on_what_was_learned_and_replay_agrees(tmp_path):
    differences = []
    for part, how in enumerate((signal.SIGTERM, signal.SIGKILL, signal.SIGTERM)):
        server = Server(tmp_path)
        try:
            with Client(server.url) as client:
                differences += [visit(client, 80 * part + number) for number in range(80)]
                if part == 2:
                    wait_until(partial(has_learned, client, len(differences) - 1))
                    found = replayed(tmp_path)["policies"][0]
                    live = learned(client, found["last_lesson"])
                    assert (found["last_lesson"], found["state_sha256"]) == (live["last_lesson"], live["state_sha256"])
        finally:
            server.end(how)
    found = replayed(tmp_path)
    assert found["is_equal"]
    assert found["policies"][0]["snapshots"]
    assert found["rows"]["rankings"] == 2 * len(differences)
    assert found["policies"][0]["lessons"] == len(differences)
    late = differences[80:]  # after a time in which to learn
    mean = sum(late) / len(late)
    error = math.sqrt(sum((value - mean) ** 2 for value in late) / (len(late) - 1) / len(late))
    assert mean - 1.96 * error > 0.1


def test_two_servers_on_one_database_and_no_keys_elsewhere_are_refused(tmp_path):
    server = Server(tmp_path)
    try:
        again = subprocess.run(
            command("serve", "--db", tmp_path / "service.db", "--port", 0), capture_output=True, text=True
        )
        assert again.returncode == 2
        assert "in use by another server" in again.stderr
        taken = subprocess.run(
            command("serve", "--db", tmp_path / "b.db", "--port", server.url.rpartition(":")[2]),
            capture_output=True,
            text=True,
        )
        assert taken.returncode == 2
        assert "cannot listen on 127.0.0.1" in taken.stderr
        made = subprocess.run(
            command("service", "key", "new", "--db", tmp_path / "service.db", "--scopes", "rank,events,read"),
            capture_output=True, text=True, check=True,
        )  # fmt: skip

        def asks_for_a_key() -> bool:
            """Whether the server has noticed the key."""
            with Client(server.url) as client:
                try:
                    client.rank(query="q", items=["a"])
                except ValueError as error:
                    return "status 401" in str(error)
            return False

        wait_until(asks_for_a_key)
        with Client(server.url, key=made.stdout.strip()) as client:
            assert client.rank(query="q", items=["a"])["logged"]
    finally:
        server.end(signal.SIGTERM)
    exposed = subprocess.run(
        command("serve", "--db", tmp_path / "c.db", "--host", "0.0.0.0", "--port", 0), capture_output=True, text=True
    )
    assert exposed.returncode == 2
    assert "without keys only this machine is served" in exposed.stderr
