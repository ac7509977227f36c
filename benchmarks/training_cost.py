"""An epoch of the default PG-Rank, and the memory of its training.

Before: all features scaled beforehand, four networks one after the other, each with its own dropout, every weight updated on its own. That
path is kept here in plain torch. Memory is that of a whole fit, dataset included, over the array of features.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import rankpolicy as rp
from rankpolicy.data.batches import RaggedTensors, ScaledRows
from rankpolicy.data.scaling import fit_scaling
from rankpolicy.models import MLP
from rankpolicy.models.average import Average
from rankpolicy.objectives import PolicyGradient
from rankpolicy.training import TrainingSettings, fit_network

LIST_LENGTH, NUM_FEATURES, NUM_NETWORKS, BATCH_QUERIES = 120, 136, 4, 32
QUERIES_TIMED, QUERIES_WEIGHED = 600, 6000


def make_data(num_queries: int) -> rp.RankingDataset:
    rng = np.random.default_rng(0)
    num_items = num_queries * LIST_LENGTH
    features = rng.standard_normal((num_items, NUM_FEATURES), dtype=np.float32)
    return rp.from_arrays(features, rng.integers(0, 5, num_items), group=np.full(num_queries, LIST_LENGTH))


def epoch_before(network: Average, train: RaggedTensors, objective: PolicyGradient) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=False, foreach=False)
    network.train()
    for batch in train.shuffled_batches(BATCH_QUERIES, generator=torch.Generator().manual_seed(0)):
        scores = torch.cat([batch.padding.pad(member(batch.features)) for member in network.members])
        value = objective(scores, batch.repeated(NUM_NETWORKS))
        optimizer.zero_grad(set_to_none=True)
        (value.loss * NUM_NETWORKS).backward()
        optimizer.step()


def seconds(program: Callable[[], object], clock: Callable[[], float], repeats: int = 5) -> float:
    program()
    least = float("inf")
    for _ in range(repeats):
        start = clock()
        program()
        least = min(least, clock() - start)
    return least


def epoch_ratios() -> list[dict[str, object]]:
    data = make_data(QUERIES_TIMED)
    scaling = fit_scaling("quantile", data)
    cpu = torch.device("cpu")
    before = RaggedTensors.of(data, scaling.apply(data.features), cpu)
    after = RaggedTensors.of(data, ScaledRows(data.features, scaling, cpu), cpu)
    network = Average([MLP().new_network_of(2 * NUM_FEATURES) for _ in range(NUM_NETWORKS)])
    objective, settings = PolicyGradient(), TrainingSettings(epochs=1, batch_queries=BATCH_QUERIES)

    def old() -> None:
        torch.set_num_threads(1)  # as networks of this size were trained
        epoch_before(network, before, objective)

    def new() -> None:
        torch.set_num_threads(2)
        fit_network(network, after, objective, settings=settings, generator=torch.Generator().manual_seed(0))

    where = f"{QUERIES_TIMED} queries x {LIST_LENGTH} x {NUM_FEATURES}"
    return [
        {
            "name": f"training-epoch-{name}",
            "ratio": round(seconds(old, clock) / seconds(new, clock), 2),
            "floor": floor,
            "what": f"{name} time of an epoch, four networks one after the other / stacked, {where}",
        }
        for name, clock, floor in (("cpu", time.process_time, 1.1), ("wall", time.perf_counter, 1.3))
    ]


def resident(name: str) -> int:
    """Bytes of this process by their name in Linux's status file: VmRSS now, VmHWM at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def memory_ratio() -> dict[str, object]:
    rp.PGRank(epochs=1).fit(make_data(40), progress=False)  # loads libraries and compiled kernels
    at_first = resident("VmRSS")
    data = make_data(QUERIES_WEIGHED)
    Path("/proc/self/clear_refs").write_text("5")  # forgets the copy from which the dataset was made
    rp.PGRank(epochs=1).fit(data, progress=False)
    peak = resident("VmHWM") - at_first
    return {
        "name": "training-memory",
        "ratio": round(data.features.nbytes / peak, 2),
        "floor": 0.66,
        "what": f"array / peak memory of fitting, array included ({peak / data.features.nbytes:.2f} arrays)",
    }


if __name__ == "__main__":
    if "--memory" in sys.argv:
        print(json.dumps(memory_ratio()))
    else:
        for result in epoch_ratios():
            print(json.dumps(result))
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", "benchmarks.training_cost", "--memory"], check=True)
