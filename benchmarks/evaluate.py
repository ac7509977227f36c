"""nDCG@10 and AP of 10,000 queries with 100 items each: ranx against evaluate, side by side in one process.

ranx gets Qrels and Run already built and sorted, warmed up, and need not check that both hold the same queries. Ours
starts from flat scores: it ranks them, measures every query and takes the means.
"""

from __future__ import annotations

import json
import os
import statistics
import time
import warnings
from collections.abc import Callable

os.environ.setdefault("NUMBA_NUM_THREADS", "2")

import numpy as np

from rankpolicy.data.dataset import from_arrays
from rankpolicy.evaluation import evaluate

NUM_QUERIES = 10_000
NUM_ITEMS = 100
NUM_REPEATS = 7


def measure() -> dict[str, object]:
    """Median time of ranx over that of ours, repeats interleaved, after a check that both give the same means."""
    import ranx

    generator = np.random.default_rng(0)
    labels = generator.choice(5, p=[0.6, 0.2, 0.1, 0.07, 0.03], size=NUM_QUERIES * NUM_ITEMS)
    scores = (labels + generator.normal(scale=2.0, size=labels.shape)).astype(np.float32)
    dataset = from_arrays(np.zeros((len(labels), 1), np.float32), labels, group=np.full(NUM_QUERIES, NUM_ITEMS))
    items = np.array([f"item{i}" for i in range(NUM_ITEMS)])
    qrels, run = ranx.Qrels(_by_query(labels.tolist(), items)), ranx.Run(_by_query(scores.tolist(), items))

    def peer() -> dict[str, float]:
        return ranx.evaluate(qrels, run, ["ndcg_burges@10", "map"], make_comparable=False)

    def ours() -> dict[str, float]:
        return evaluate(scores, dataset, ["ndcg@10", "map"]).means

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(list(ours().values()), list(peer().values()), atol=1e-6)
        times = [(_seconds(peer), _seconds(ours)) for _ in range(NUM_REPEATS)]
    peer_seconds, our_seconds = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = round(peer_seconds / our_seconds, 1)
    return {"name": "evaluate-ndcg10-ap", "ratio": ratio, "floor": 5, "what": "ranx / ours"}


def _by_query(values: list[float], items: np.ndarray) -> dict[str, dict[str, float]]:
    return {
        f"query{q}": dict(zip(items.tolist(), values[q * NUM_ITEMS : (q + 1) * NUM_ITEMS], strict=True))
        for q in range(NUM_QUERIES)
    }


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


if __name__ == "__main__":
    print(json.dumps(measure()))
