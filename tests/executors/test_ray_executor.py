"""A Ray cluster of three local nodes gives the results of one process, also when a node is lost; a Ray started here is closed to others."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rankpolicy.executors import Executor, Ray
from rankpolicy.types import RankPolicyError
from tests.executors.same_results import WORK
from tests.ray_cluster import ray, running_cluster

TASKS = list(range(12))


def drawn(seconds, seed):
    """A result that depends on the seed of the task and on nothing else."""
    time.sleep(seconds)  # stands for work, in the midst of which a node is lost
    return float(np.random.default_rng(seed).normal())


def refused(task):
    raise RankPolicyError("labels must be grades.")


def failed(task):
    return 1 / task


class LosingNode(Executor):
    """Kills a node of the cluster after the second result, while others are under way."""

    name = "losing a node"

    def __init__(self, inner, cluster):
        super().__init__(4)
        self.inner, self.cluster = inner, cluster
        self.node = cluster.add_node(num_cpus=2)
        self.num_results = 0

    def as_finished(self, function, tasks):
        for number, result in self.inner.as_finished(function, tasks):
            self.num_results += 1
            if self.num_results == 2:
                self._lose_node()
            yield number, result

    def _lose_node(self):
        """End the node as a machine ends: with everything that runs there.

        Ray leaves the workers alive for a while, and on a busy machine one of them still replies after its node was given up: a check
        inside Ray then ends the process that waits ("Tried to complete task that was not pending").
        """
        (raylet,) = self.node.all_processes["raylet"]
        pid = raylet.process.pid
        workers = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        os.kill(pid, signal.SIGSTOP)  # so that it reports no worker as lost before it is lost itself
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        self.cluster.remove_node(self.node, allow_graceful=False)
        self.node = None

    def share(self, value):
        return self.inner.share(value)


@pytest.fixture(scope="module")
def cluster():
    with running_cluster([2, 2]) as made:
        yield made


def test_a_lost_node_costs_no_result(cluster):
    expected = [drawn(0, seed) for seed in TASKS]
    executor = LosingNode(Ray(6), cluster)
    assert executor.map(partial(drawn, 0.4), TASKS) == expected
    assert executor.node is None


@pytest.mark.parametrize("name", WORK)
def test_the_same_bits_on_ray_and_with_a_node_lost(name, cluster):
    expected = WORK[name](None)
    for jobs in (1, 4):
        assert WORK[name](Ray(jobs)) == expected
    executor = LosingNode(Ray(4), cluster)
    assert WORK[name](executor) == expected
    assert executor.node is None or executor.num_results < 2


def test_the_error_of_a_task_is_the_error_of_the_call(cluster):
    with pytest.raises(RankPolicyError, match=r"^labels must be grades\.$"):
        Ray(2).map(refused, [1, 2])
    with pytest.raises(ZeroDivisionError):
        Ray(2).map(failed, [1, 0])
    with pytest.raises(RankPolicyError, match="top level of a module"):
        Ray(2).map(lambda task: task, [1, 2])


def test_an_address_where_nothing_listens(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(RankPolicyError, match=r"^no Ray answers at 127\.0\.0\.1:9 \([^\n]*$"):
        Ray(address="127.0.0.1:9").map(refused, [1])


STARTED_HERE = """
import os, sys
from rankpolicy.executors import Ray
from tests.executors.test_ray_executor import failed, listening_addresses

with Ray(2) as executor:
    print(executor.map(failed, [1, 2, 4]))
    print(os.environ["RAY_AUTH_MODE"], sorted(listening_addresses(os.getpid())))
"""


def listening_addresses(pid):
    """Where a process and its descendants accept connections."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    sockets = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                sockets[f"socket:[{fields[9]}]"] = fields[1].partition(":")[0]
    found = set()
    for member in family:
        for handle in Path(f"/proc/{member}/fd").glob("*"):
            try:
                found |= {sockets[name]} if (name := os.readlink(handle)) in sockets else set()
            except OSError:
                continue
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads the sockets of Linux")
def test_a_ray_started_here_listens_on_the_loopback_address_and_asks_for_a_token():
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    ended = subprocess.run(
        [sys.executable, "-c", STARTED_HERE],
        env=environment | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    results, facts = ended.stdout.strip().splitlines()
    assert results == "[1.0, 0.5, 0.25]"
    mode, _, addresses = facts.partition(" ")
    assert mode == "token"
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert addresses != "[]"
    assert set(eval(addresses)) <= loopback
