"""Small rankers with known orders."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rankpolicy as rp

ITEMS = [{"id": name, "features": [value, 1.0]} for name, value in zip("abcd", (0.1, 0.7, 0.4, 0.9), strict=True)]
BEST_FIRST = ["d", "b", "c", "a"]


def saved_ranker(path: Path, *, sign: float = 1.0) -> Path:
    """A ranker by the first feature; of descending order for a negative sign."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    rp.Regression(model="linear").fit(X, sign * X[:, 0] + 1, qid=np.repeat(np.arange(12), 5), progress=False).save(path)
    return path
