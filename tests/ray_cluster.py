"""A local Ray cluster of several nodes, which gets the time that its processes need to start on a busy machine."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.waits import LONGEST_WAIT

# Ray reads these when it is loaded. A cluster that asks for a token ends at once where there is none, as in a new home folder:
# only ray.init makes one.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
_LONGEST_WAIT = str(round(LONGEST_WAIT))  # instead of 30 s or 60 s
for _name in (
    "gcs_server_port_wait_time_s",
    "raylet_start_wait_time_s",
    "gcs_server_request_timeout_seconds",
    "worker_register_timeout_seconds",
):
    os.environ.setdefault(f"RAY_{_name}", _LONGEST_WAIT)

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")


@contextmanager
def running_cluster(num_cpus: Sequence[int]) -> Iterator[Any]:
    """A cluster with a node for each number of cores, to which this process is connected."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": num_cpus[0], "include_dashboard": False})
    try:
        for number in num_cpus[1:]:
            cluster.add_node(num_cpus=number)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
