"""Threads sleep while they wait, and there are no more of them than the container may run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankpolicy.threads import cpu_quota, prepare_threads

CHOSEN_BY_USERS = (
    "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "NUMBA_THREADING_LAYER", "NUMBA_THREADING_LAYER_PRIORITY",
    "OMP_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip


def control_groups(root: Path, listing: str, files: dict[str, str]) -> Path:
    files = {"proc/self/cgroup": listing, **{f"sys/fs/cgroup/{name}": text for name, text in files.items()}}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("listing", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/a/b\n", {"a/b/cpu.max": "200000 100000\n", "a/cpu.max": "max 100000\n"}, 2.0),
        ("0::/../outside\n", {"cpu.max": "300000 100000\n"}, 3.0),
        ("1:cpu,cpuacct:/\n", {"cpu,cpuacct/cpu.cfs_quota_us": "50000\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 0.5),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ("4:cpuacct,cpu:/docker/abc\n", {"cpu/cpu.cfs_quota_us": "250000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2.5),
        ("3:memory:/\n", {"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ("0::/\n", {"cpu.max": "garbage"}, None),
    ],
)  # fmt: skip
def test_the_quota_of_both_versions_of_control_groups(tmp_path, listing, files, quota):
    assert cpu_quota(control_groups(tmp_path, listing, files)) == quota


def test_there_is_no_quota_without_control_groups(tmp_path):
    assert cpu_quota(tmp_path) is None


def test_users_choose_first(monkeypatch):
    monkeypatch.setattr("rankpolicy.threads.usable_cpus", lambda: 1)
    monkeypatch.setattr("rankpolicy.threads.affinity_cpus", lambda: 8)
    theirs = {"OMP_WAIT_POLICY": "ACTIVE", "NUMBA_THREADING_LAYER": "omp", "OMP_NUM_THREADS": "4"}
    environment = theirs.copy()
    prepare_threads(environment)
    assert {name: environment[name] for name in theirs} == theirs
    assert "NUMBA_THREADING_LAYER_PRIORITY" not in environment


def python(program: str, **environment: str) -> str:
    """What a fresh process prints, started without any of the variables that users may set."""
    inherited = {name: value for name, value in os.environ.items() if name not in CHOSEN_BY_USERS}
    return subprocess.check_output([sys.executable, "-c", program], text=True, env=inherited | environment).strip()


def test_a_quota_bounds_the_threads_of_torch_and_numba():
    program = """
import rankpolicy.threads
rankpolicy.threads.cpu_quota = lambda: 0.5
rankpolicy.threads.affinity_cpus = lambda: 2
rankpolicy.threads.prepare_threads()
import torch, numba
print(torch.get_num_threads(), numba.get_num_threads())
"""
    assert python(program) == "1 1"


def test_a_quota_bounds_the_threads_of_a_torch_that_is_loaded_already():
    program = """
import torch, rankpolicy.threads
torch.set_num_threads(2)
rankpolicy.threads.cpu_quota = lambda: 0.5
rankpolicy.threads.affinity_cpus = lambda: 2
rankpolicy.threads.prepare_threads()
print(torch.get_num_threads())
"""
    assert python(program) == "1"


KERNEL = """
import os, numba
import numpy as np
import rankpolicy
from rankpolicy.kernels.clicks.expectation import weighted_counts_of_rows

def run_kernel():
    codes, weights = np.zeros(200_000, np.int32), np.ones((2, 200_000))
    return weighted_counts_of_rows(codes, codes, weights, 1)

counts = run_kernel()
"""


@pytest.mark.parametrize("first", ["", "import numba, torch"])
def test_kernels_run_on_threads_that_sleep_after_a_short_wait(first):
    program = f"{first}\n{KERNEL}\nprint(numba.threading_layer(), os.environ['OMP_WAIT_POLICY'], os.environ['GOMP_SPINCOUNT'])"
    layer, *waiting = python(program, NUMBA_NUM_THREADS="2").split()
    assert layer in ("tbb", "omp", "workqueue")
    assert waiting == ["PASSIVE", "3000"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_kernels_run_in_a_forked_process():
    program = f"""{KERNEL}
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(np.asarray(run_kernel()), np.asarray(counts)) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(program, NUMBA_NUM_THREADS="2") == "0"
