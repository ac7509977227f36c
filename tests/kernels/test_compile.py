"""Kernels wake other threads only for enough work, and are safe to call from many Python threads."""

import threading

import numba
import numpy as np
import pytest

from rankpolicy.kernels.compile import ParallelKernel, njit


def squares(values, results):
    for i in numba.prange(len(values)):
        results[i] = values[i] ** 2


kernel = njit(parallel=True)(squares)


@pytest.fixture
def runs(monkeypatch):
    """Which version of the kernel ran."""
    seen: list[str] = []
    for name in ("on_one_thread", "on_all_threads"):
        monkeypatch.setitem(kernel.__dict__, name, lambda *arguments, name=name: seen.append(name))
    monkeypatch.setattr("rankpolicy.kernels.compile._USABLE_CPUS", 2)
    monkeypatch.setattr(numba, "get_num_threads", lambda: 2)
    monkeypatch.setattr(numba, "set_num_threads", lambda count: None)
    return seen


@pytest.mark.parametrize(
    ("num_tasks", "nanoseconds", "version"),
    [(1, 10**9, "on_one_thread"), (32, 10**4, "on_one_thread"), (32, 10**9, "on_all_threads")],
)
def test_small_batches_run_on_one_thread(runs, num_tasks, nanoseconds, version):
    kernel(num_tasks=num_tasks, nanoseconds=nanoseconds)
    assert runs == [version]


def test_a_quota_of_one_cpu_means_one_thread(runs, monkeypatch):
    monkeypatch.setattr("rankpolicy.kernels.compile._USABLE_CPUS", 1)
    kernel(num_tasks=32, nanoseconds=10**9)
    assert runs == ["on_one_thread"]


def test_a_second_python_thread_does_not_wait_for_the_threads_of_the_first(runs):
    with ParallelKernel._threads_in_use:
        kernel(num_tasks=32, nanoseconds=10**9)
    assert runs == ["on_one_thread"]


def test_both_versions_give_the_same_from_many_python_threads():
    values = np.arange(1000.0)
    found = [np.zeros(1000) for _ in range(8)]

    def run(results):
        for _ in range(20):
            kernel(values, results, num_tasks=1000, nanoseconds=10**9)

    threads = [threading.Thread(target=run, args=(results,)) for results in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    single = np.zeros(1000)
    kernel(values, single, num_tasks=1, nanoseconds=0)
    for results in (single, *found):
        np.testing.assert_array_equal(results, values**2)
