"""Ratios of two programs timed side by side in one process: absolute times on a shared machine mean nothing."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

NUM_THREADS = 2


def use_two_threads() -> None:
    import numba
    import torch

    torch.set_num_threads(NUM_THREADS)
    numba.set_num_threads(min(NUM_THREADS, numba.config.NUMBA_NUM_THREADS))


def speedup(peer: Callable[[], object], ours: Callable[[], object], *, repeats: int = 7, calls: int = 1) -> float:
    """Median over interleaved repeats of peer's time divided by ours; one call of each beforehand warms caches and compilers."""
    peer(), ours()
    ratios = []
    for _ in range(repeats):
        times = []
        for program in (peer, ours):
            start = time.perf_counter()
            for _ in range(calls):
                program()
            times.append(time.perf_counter() - start)
        ratios.append(times[0] / times[1])
    return statistics.median(ratios)
