"""Starting the workers of ``data_parallel`` on this machine, and starting them again when one is lost.

Across machines ``torchrun`` does this.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rankpolicy.declarations.arguments import whole_number
from rankpolicy.threads import usable_cpus
from rankpolicy.training.data_parallel import RENDEZVOUS
from rankpolicy.types import RankPolicyError

BAD_INPUT = 2  # the exit status for which another start would not help
_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_TO_END = 10.0
_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"


def run_workers(
    command: Sequence[str], num_workers: int, *, retries: int = 3, report: Callable[[str], None] | None = None
) -> int:
    """Run a command in several processes of this machine that train together, and return the exit status of the first.

    The processes talk over the loopback device alone. When one of them is lost, the others end and all start again; those that keep a
    checkpoint go on from it. Ctrl-C ends all of them.
    """
    whole_number("workers", num_workers, at_least=1)
    whole_number("retries", retries, at_least=0)
    with tempfile.TemporaryDirectory(prefix="rankpolicy-") as folder:
        for attempt in range(retries + 1):
            statuses = _run_once(command, num_workers, Path(folder) / f"rendezvous-{attempt}", attempt)
            if all(status in (0, BAD_INPUT) for status in statuses):
                return max(statuses)
            lost = [(rank, status) for rank, status in enumerate(statuses) if status not in (0, BAD_INPUT)]
            rank, status = min(lost, key=lambda each: each[1] > 0)  # one that was killed, before those that noticed it
            how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
            if attempt < retries and report is not None:
                report(f"worker {rank} ended {how}; all {num_workers} start again ({attempt + 1} of {retries}).")
    raise RankPolicyError(
        f"worker {rank} of {num_workers} ended {how}, and so did {retries} starts before: memory may be short. Take fewer workers."
    )


def _run_once(command: Sequence[str], num_workers: int, rendezvous: Path, attempt: int) -> list[int]:
    shared = os.environ | {
        "WORLD_SIZE": str(num_workers),
        "LOCAL_WORLD_SIZE": str(num_workers),
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "OMP_NUM_THREADS": str(max(1, usable_cpus() // num_workers)),
        RENDEZVOUS: str(rendezvous),
    }
    shared.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(num_workers):
            output = None if rank == 0 else subprocess.DEVNULL  # all say the same
            processes.append(
                subprocess.Popen(
                    list(command),
                    env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stdout=output,
                    stderr=output,
                )
            )
        while all(process.poll() in (None, 0) for process in processes):
            if all(process.poll() == 0 for process in processes):
                return [0] * num_workers
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        _wait(processes, _SECONDS_TO_END)  # one is lost, or all refuse what was given
        # Workers that end only because they are told to are not the reason.
        return [0 if (status := process.poll()) is None else status for process in processes]
    finally:
        _end(processes)


def _wait(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    """Wait until all have ended; a worker whose partner is lost notices it soon."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(process.poll() is None for process in processes):
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    _wait(processes, _SECONDS_TO_END)
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
