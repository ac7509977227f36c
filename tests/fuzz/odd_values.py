"""Values that users pass by mistake, drawn at random."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import scipy.sparse
import torch


def odd_value(rng: random.Random) -> Any:
    """Any value, of a kind that a function may not expect."""
    values: list[Any] = [
        None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, 2**70, -(2**70), 0.0, 0.5, 1.5, -0.5, float("nan"), float("inf"), 1e300,
        "", "a", "0", "ndcg@10", "ndcg@", "ndgc", "mean(", "é" * 30, "x" * 3000, "\0", "/", "/no/such/file", "data.txt", b"bytes",
        [], [1], [1, 2, 3], [[1, 2], [3]], ["a", None], [float("nan")], [0.5, -1.0], [10**400], [[]], [[0, 1], [1, 0]], [("a", 1)],
        (), (0.5, 0.5), (1, 2, 3), {}, {"a": 1}, {"a": "b"}, {"epochs": "x"}, {1, 2}, object(), int, print, range(3), 1j, Decimal("0.5"),
        Path("x"), iter([1, 2]), lambda *values: None, lambda *values: values,
        np.array([]), np.array(1.0), np.array([1, 2]), np.zeros((2, 2)), np.array(["a"]), np.array([None]), np.int64(3), np.float32(0.5),
        np.bool_(True), np.array([2**63], np.uint64), np.zeros(2, complex), np.zeros((2, 2, 2)), np.zeros(2, [("a", "f4")]),
        np.array([[1.0, np.nan]]), np.zeros((0, 3)), np.zeros((3, 0)), np.datetime64("2020-01-01"), np.array(["2020"], "datetime64[D]"),
        torch.zeros(3), torch.tensor(1), torch.zeros(2, 2, requires_grad=True), scipy.sparse.eye(3, format="csr"),
        pandas.DataFrame({"a": [1, 2]}), pandas.Series([1.0, None]), polars.DataFrame({"a": ["x", None]}), polars.Series([1, 2]),
    ]  # fmt: skip
    return rng.choice(values)


def odd_word(rng: random.Random) -> str:
    """Any word of a command line."""
    words = [
        "", "0", "1", "-1", "1.5", "nan", "inf", "1e400", "9" * 30, "a", "x=y", "=", "a=", "=a", "epochs=0", "epochs=x", "none",
        "ndcg@", "ndcg@0", "mean(", "é", "'", "--", "-x", "/", "/no/such", ".", "..", "x" * 300, "a,b", ",", "0.5,0.5", "%s", "{}", "\n",
        "model=mlp", "model.hidden=x", "model.hidden=-1", "random_state=none", "reward=map", "=" * 50, "\\", "$HOME", "~", "label", "qid",
        "data.txt", "data.csv", "data.parquet", "log.csv", "table.csv", "model.rp", "run.toml", "--qid", "--label", "--json", "--seed",
        "--metrics", "--set", "--out", "--data", "--ties", "worst", "pg-rank", "lambdamart", "adarank", "cascade-ts",
    ]  # fmt: skip
    return rng.choice(words)
