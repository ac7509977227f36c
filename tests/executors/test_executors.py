"""Every executor returns what a loop would, whatever happens to its workers."""

import gc
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rankpolicy.executors import EXECUTORS, Processes, Serial, Threads, make_executor, opened
from rankpolicy.types import RankPolicyError
from tests.waits import LONGEST_WAIT, wait_until

TASKS = list(range(9))


def drawn(scale, seed):
    """A result that depends on the shared data and on the seed of the task, and on nothing else."""
    return float(np.random.default_rng(seed).normal() * scale)


def of_shared(task):
    handle, number = task
    return float(handle.get()[number])


def refused(task):
    raise RankPolicyError("labels must be grades.")


def failed(task):
    return 1 / task


def die_once(folder, task):
    """Ends the process of its first run without a word, as the kernel does when memory is short."""
    mark = Path(folder) / str(task)
    if task == 3 and not mark.exists():
        mark.touch()
        os._exit(9)
    return task * 10


def die(task):
    os._exit(9)


def closure(task):
    return lambda: task


def process(task):
    time.sleep(0.05)  # stands for work, in the midst of which processes are ended
    return os.getpid()


@pytest.fixture(scope="module")
def two():
    with Processes(2) as executor:
        yield executor


@pytest.mark.parametrize("make", [Serial, lambda: Threads(3), lambda: Processes(1)])
def test_results_stand_in_the_order_of_the_tasks(make):
    expected = [drawn(2.0, seed) for seed in TASKS]
    with make() as executor:
        assert executor.map(partial(drawn, 2.0), TASKS) == expected
        assert executor.map(partial(drawn, 2.0), []) == []


def test_processes_return_the_same_and_stay_for_the_next_call(two):
    seen = []
    expected = [drawn(2.0, seed) for seed in TASKS]
    assert two.map(partial(drawn, 2.0), TASKS, report=lambda number, result: seen.append((number, result))) == expected
    assert sorted(seen) == list(enumerate(expected))
    first, second = set(two.map(process, TASKS)), set(two.map(process, TASKS))
    assert len(first | second) <= 2
    assert os.getpid() not in first


def test_shared_values_reach_the_tasks_of_several_calls(two):
    for executor in (Serial(), two):
        handle = executor.share(np.arange(5.0))
        for _ in range(2):
            assert executor.map(of_shared, [(handle, 3), (handle, 1)]) == [3.0, 1.0]


def test_the_error_of_a_task_is_the_error_of_the_call(two):
    for executor in (Serial(), Threads(2), two):
        with pytest.raises(RankPolicyError, match=r"^labels must be grades\.$"):
            executor.map(refused, [1, 2])
        with pytest.raises(ZeroDivisionError):
            executor.map(failed, [1, 0, 2])
    assert two.map(partial(drawn, 1.0), [4, 5]) == [drawn(1.0, 4), drawn(1.0, 5)]


def test_a_lost_process_costs_no_result(two, tmp_path):
    assert two.map(partial(die_once, str(tmp_path)), TASKS) == [10 * task for task in TASKS]
    assert (tmp_path / "3").exists()


def test_a_task_that_always_ends_its_process_is_named_as_such():
    with Processes(2, retries=1) as executor, pytest.raises(RankPolicyError, match="ended early, again and again"):
        executor.map(die, [1, 2, 3])


def test_what_cannot_travel_is_refused(two):
    with pytest.raises(RankPolicyError, match="top level of a module"):
        two.map(lambda task: task, [1, 2])
    with pytest.raises(RankPolicyError, match="cannot travel"):
        two.map(refused, [lambda: 1, lambda: 2])
    with pytest.raises(RankPolicyError, match="cannot travel"):
        two.map(closure, [1, 2])


def test_a_report_that_fails_ends_the_workers():
    def stop(number, result):
        raise KeyboardInterrupt

    with Processes(2) as executor:
        with pytest.raises(KeyboardInterrupt):
            executor.map(process, list(range(400)), report=stop)
        assert executor._pool is None


def test_names_jobs_and_addresses():
    assert list(EXECUTORS) == ["serial", "threads", "processes", "ray"]
    with pytest.raises(RankPolicyError, match=r"Unknown executor 'proceses'\. Did you mean 'processes'"):
        make_executor("proceses")
    with pytest.raises(RankPolicyError, match="needs executor='ray'"):
        make_executor("processes", address="10.0.0.5:6379")
    with pytest.raises(RankPolicyError, match="one task at a time"):
        make_executor("serial", jobs=2)
    with pytest.raises(RankPolicyError, match="jobs must be a whole number, 1 or more; got 0"):
        make_executor("processes", jobs=0)
    with opened(None) as serial, opened(serial) as same:
        assert same is serial
        assert isinstance(serial, Serial)


SCRIPT = """
import os, sys, time
from rankpolicy.executors import Processes
from tests.executors.test_executors import process

def note(number, pid):
    print(pid, flush=True)

if __name__ == "__main__":
    Processes(2).map(process, list(range(10_000)), report=note)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals of Unix")
@pytest.mark.parametrize("ending", ["SIGINT", "SIGKILL"])
def test_workers_end_with_the_process_that_started_them(ending, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        workers = {int(run.stdout.readline()) for _ in range(4)}
        # Ctrl-C reaches all processes of a terminal; a kill only the one.
        if ending == "SIGINT":
            os.killpg(run.pid, signal.SIGINT)
        else:
            run.kill()
        errors = run.communicate(timeout=LONGEST_WAIT)[1]
    if ending == "SIGINT":
        assert errors.count("Traceback") == 1, errors  # of this process; workers say nothing
    wait_until(lambda: not any(map(_is_running, workers)), lambda: "a worker is still running")


def _is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_tasks_may_come_from_a_generator():
    assert Serial().map(abs, (number for number in (-1, 2))) == [1, 2]


def test_an_executor_that_nobody_closed_leaves_no_files():
    executor = Processes(2)
    folder = Path(executor.share([1, 2])._path).parent
    assert folder.is_dir()
    del executor
    gc.collect()
    assert not folder.exists()
