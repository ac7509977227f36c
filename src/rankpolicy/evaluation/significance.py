"""Paired tests of two rankers on the same queries: p-values, two-sided, of the hypothesis that they do equally well."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

_CELLS_OF_A_BLOCK = 1 << 22


def paired_t_test(a: ArrayLike, b: ArrayLike, *, random_state: int = 0) -> float:
    """Student's t-test of the mean difference per query; it draws nothing at random.

    t = mean(d) / (sd(d) / sqrt(n)) with n - 1 degrees of freedom, d = a - b. One query alone gives 1.

    >>> round(paired_t_test([0.5, 0.7, 0.9], [0.4, 0.5, 0.6]), 4)  # t = 0.2 / (0.1 / sqrt(3)) = 3.4641
    0.0742
    """
    stdtr = require("scipy.special", "The t-test").stdtr
    differences = _differences(a, b)
    n = len(differences)
    if n < 2 or not differences.any():
        return 1.0
    standard_error = differences.std(ddof=1) / np.sqrt(n)
    if standard_error == 0:
        return 0.0
    return float(2 * stdtr(n - 1, -abs(differences.mean() / standard_error)))


def wilcoxon_signed_rank(a: ArrayLike, b: ArrayLike, *, random_state: int = 0) -> float:
    """Wilcoxon's signed-rank test of the differences per query, zeros left out; it draws nothing at random.

    Exact up to 50 queries without ties, normal approximation beyond.

    >>> wilcoxon_signed_rank([0.5, 0.7, 0.9], [0.4, 0.5, 0.6])  # all signs alike: 2 of the 8 equally likely cases
    0.25
    """
    wilcoxon = require("scipy.stats", "Wilcoxon's test").wilcoxon
    differences = _differences(a, b)
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences[differences != 0]).pvalue)


def fisher_randomization(a: ArrayLike, b: ArrayLike, *, random_state: int = 0, num_flips: int = 10_000) -> float:
    """Fisher's randomization test of the mean difference (Smucker et al. 2007).

    The sign of each query's difference is flipped at random:
    p = (1 + number of flips with |mean| >= |observed mean|) / (1 + num_flips).

    >>> fisher_randomization([0.5, 0.7], [0.5, 0.7])
    1.0
    """
    differences = _differences(a, b)
    differences = differences[differences != 0]
    n = len(differences)
    if n == 0:
        return 1.0
    # A flip that equals the observed sum up to rounding is as extreme as it.
    observed = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()
    generator = np.random.default_rng(random_state)
    flips_of_a_block = max(1, _CELLS_OF_A_BLOCK // n)
    as_extreme = 0
    for first in range(0, num_flips, flips_of_a_block):
        size = min(flips_of_a_block, num_flips - first)
        bits = np.unpackbits(generator.integers(256, size=(size, (n + 7) // 8), dtype=np.uint8), axis=1, count=n)
        sums = 2 * (bits.astype(np.float64) @ differences) - differences.sum()
        as_extreme += int((np.abs(sums) >= observed).sum())
    return (1 + as_extreme) / (1 + num_flips)


PairedTest = Callable[..., float]

TESTS: dict[str, PairedTest] = {
    "t-test": paired_t_test,
    "wilcoxon": wilcoxon_signed_rank,
    "fisher-randomization": fisher_randomization,
}


def holm(p_values: Sequence[float]) -> NDArray[np.float64]:
    """p-values adjusted for many comparisons (Holm 1979).

    The i-th smallest of m is multiplied by m - i + 1; adjusted values never fall with i and are at most 1.

    >>> holm([0.01, 0.04, 0.03]).tolist()  # 3 * 0.01, 2 * 0.03, then 1 * 0.04 raised to 0.06
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def _differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """a - b without the queries that either side skips."""
    of_a, of_b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if of_a.ndim != 1 or of_a.shape != of_b.shape:
        raise RankPolicyError(
            f"a paired test needs values of the same queries, one axis; got shapes {of_a.shape} and {of_b.shape}."
        )
    return (of_a - of_b)[~(np.isnan(of_a) | np.isnan(of_b))]
