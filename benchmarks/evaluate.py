"""nDCG@10 and AP of 10,000 queries with 100 items each: ranx against evaluate, side by side in one process.

ranx gets Qrels and Run already built and sorted, warmed up, and need not check that both hold the same queries. Ours
starts from flat scores: it ranks them, measures every query and takes the means.
"""

from __future__ import annotations

import json
import warnings

import numpy as np

from benchmarks.timing import speedup, use_two_threads
from rankpolicy.data.arrays import from_arrays
from rankpolicy.evaluation import evaluate

NUM_QUERIES = 10_000
NUM_ITEMS = 100


def measure() -> dict[str, object]:
    """Median time of ranx over that of ours, repeats interleaved, after a check that both give the same means."""
    import ranx

    use_two_threads()
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
        ratio = round(speedup(peer, ours), 1)
    return {"name": "evaluate-ndcg10-ap", "ratio": ratio, "floor": 5, "what": "ranx / ours"}


def _by_query(values: list[float], items: np.ndarray) -> dict[str, dict[str, float]]:
    return {
        f"query{q}": dict(zip(items.tolist(), values[q * NUM_ITEMS : (q + 1) * NUM_ITEMS], strict=True))
        for q in range(NUM_QUERIES)
    }


if __name__ == "__main__":
    print(json.dumps(measure()))
