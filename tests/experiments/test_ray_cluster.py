"""Tasks on a Ray cluster of three local nodes give the results that one process gives, also when a node is lost."""

import os
import time

import pytest

from rankpolicy.experiments.parallel import run_in_processes
from rankpolicy.experiments.ray_cluster import run_on_ray
from rankpolicy.types import RankPolicyError

os.environ.setdefault("RAY_AUTH_MODE", "token")
ray = pytest.importorskip("ray")

TASKS = list(range(12))


def drawn(shared, seed):
    """A result that depends on shared data and on the seed of the task, and on nothing else."""
    import numpy as np

    time.sleep(shared["seconds"])
    return float(np.random.default_rng(seed).normal() * shared["scale"])


def refused(shared, task):
    raise RankPolicyError("labels must be grades.")


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes = [found.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=found.address, log_to_driver=False, logging_level="ERROR")
    yield found, nodes
    ray.shutdown()
    found.shutdown()


def test_results_are_those_of_one_process_also_when_a_node_is_lost(cluster):
    found, nodes = cluster
    shared = {"seconds": 0.3, "scale": 2.0}
    expected = dict(run_in_processes(drawn, shared | {"seconds": 0}, TASKS, jobs=1))
    results = {}
    for number, result in run_on_ray(drawn, shared, TASKS):
        results[number] = result
        if len(results) == 2:
            found.remove_node(nodes.pop(), allow_graceful=False)
    assert results == expected


def test_an_error_of_a_task_is_the_error_of_the_user(cluster):
    with pytest.raises(RankPolicyError, match=r"^labels must be grades\.$"):
        list(run_on_ray(refused, None, [1, 2]))


def test_an_address_where_nothing_listens(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(RankPolicyError, match=r"there is no Ray at 127\.0\.0\.1:9 \("):
        list(run_on_ray(drawn, None, [1], address="127.0.0.1:9"))
