"""A fit of the default PG-Rank with one epoch, and the memory of its training.

Before: all features scaled beforehand by numpy, four networks one after the other, each with its own dropout, every weight updated on its
own, and threads that wait in a busy loop. That path is kept here. Memory is that of a whole fit, dataset included, over the array of
features.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

import rankpolicy as rp
from rankpolicy.data.batches import RaggedTensors
from rankpolicy.data.scaling import with_quantiles
from rankpolicy.models import MLP
from rankpolicy.models.average import Average
from rankpolicy.objectives import PolicyGradient

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


def scaled_before(features: np.ndarray) -> np.ndarray:
    """All features with their quantiles, standardised: fitted and applied with numpy alone."""
    knots = np.ascontiguousarray(np.quantile(features, np.linspace(0, 1, 257), axis=0, method="nearest").T, np.float32)
    scaled = with_quantiles(features, knots)
    center = np.array([column.mean(dtype=np.float64) for column in scaled.T], np.float32)
    spread = np.array([column.std(dtype=np.float64) for column in scaled.T], np.float32)
    return (with_quantiles(features, knots) - center) / spread  # fitted first, then applied


def fit_before(data: rp.RankingDataset) -> None:
    torch.set_num_threads(1)  # as networks of this size were trained
    train = RaggedTensors.of(data, scaled_before(data.features_by_query), torch.device("cpu"))
    epoch_before(
        Average([MLP().new_network_of(2 * NUM_FEATURES) for _ in range(NUM_NETWORKS)]), train, PolicyGradient()
    )


def fit_after(data: rp.RankingDataset) -> None:
    rp.PGRank(epochs=1, batch_queries=BATCH_QUERIES).fit(data, progress=False)


def fit_seconds(version: str) -> dict[str, float]:
    """CPU and wall time of a fit with one epoch, the least of some."""
    fit, data = {"before": fit_before, "after": fit_after}[version], make_data(QUERIES_TIMED)
    fit(data)
    least = {"cpu": float("inf"), "wall": float("inf")}
    for _ in range(3):
        start = time.process_time(), time.perf_counter()
        fit(data)
        spent = time.process_time() - start[0], time.perf_counter() - start[1]
        least = {name: min(least[name], value) for name, value in zip(least, spent, strict=True)}
    return least


# Before, threads waited as OpenMP lets them by default: in a busy loop for a while.
WAITING_BEFORE = {"KMP_BLOCKTIME": "200", "NUMBA_THREADING_LAYER": "omp"}


def fit_ratios() -> list[dict[str, object]]:
    """Processes take turns, because how threads wait is settled when the libraries are loaded."""
    least = {version: {"cpu": float("inf"), "wall": float("inf")} for version in ("before", "after")}
    for _ in range(3):
        for version, times in least.items():
            environment = os.environ | (WAITING_BEFORE if version == "before" else {})
            command = [sys.executable, "-m", "benchmarks.training_cost", "--fit", version]
            measured = json.loads(subprocess.check_output(command, text=True, env=environment))
            times.update({name: min(times[name], measured[name]) for name in times})
    where = f"{QUERIES_TIMED} queries x {LIST_LENGTH} x {NUM_FEATURES}"
    return [
        {
            "name": f"training-{name}",
            "ratio": round(least["before"][name] / least["after"][name], 2),
            "floor": 4,
            "what": f"{name} time of a fit with one epoch, before / after ({least['after'][name]:.2f} s), {where}",
        }
        for name in ("cpu", "wall")
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
    elif "--fit" in sys.argv:
        print(json.dumps(fit_seconds(sys.argv[-1])))
    else:
        for result in fit_ratios():
            print(json.dumps(result))
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", "benchmarks.training_cost", "--memory"], check=True)
