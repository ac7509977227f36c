"""Paired tests of two rankers on the same queries: two-sided p-values of the hypothesis that they do equally well."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.declarations.arguments import as_float64, checked_kinds, seeded, whole_number
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

_CELLS_PER_BLOCK = 1 << 22


@checked_kinds
def paired_t_test(a: ArrayLike, b: ArrayLike, *, random_state: int = 0) -> float:
    """p-value of Student's t-test of the mean difference per query.

    t = mean(d) / (sd(d) / sqrt(n)) with n - 1 degrees of freedom, d = a - b. With a single query the p-value is 1.

    Parameters
    ----------
    a, b
        Values of one metric for the same queries, in the same order (query,); queries that are NaN in either are left out.
    random_state
        Not used: the test draws nothing at random. It is there so that all tests are called in the same way.

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


@checked_kinds
def wilcoxon_signed_rank(a: ArrayLike, b: ArrayLike, *, random_state: int = 0) -> float:
    """p-value of Wilcoxon's signed-rank test of the differences per query; differences of 0 are left out.

    The test is exact up to 50 queries without ties and uses the normal approximation beyond.

    Parameters
    ----------
    a, b
        Values of one metric for the same queries, in the same order (query,); queries that are NaN in either are left out.
    random_state
        Not used: the test draws nothing at random. It is there so that all tests are called in the same way.

    >>> wilcoxon_signed_rank([0.5, 0.7, 0.9], [0.4, 0.5, 0.6])  # all signs equal: 2 of 8 equally likely cases
    0.25
    """
    wilcoxon = require("scipy.stats", "Wilcoxon's test").wilcoxon
    differences = _differences(a, b)
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences[differences != 0]).pvalue)


@checked_kinds
def fisher_randomization(a: ArrayLike, b: ArrayLike, *, random_state: int = 0, num_flips: int = 10_000) -> float:
    """p-value of Fisher's randomization test of the mean difference (Smucker et al. 2007).

    The signs of the differences are flipped at random, ``num_flips`` times:
    p = (1 + number of times with |mean| >= |observed mean|) / (1 + num_flips).

    Parameters
    ----------
    a, b
        Values of one metric for the same queries, in the same order (query,); queries that are NaN in either are left out.
    random_state
        Seed of the random signs.
    num_flips
        Number of times that signs are drawn; the smallest possible p-value is 1 / (1 + num_flips). The default is 10,000.

    >>> fisher_randomization([0.5, 0.7], [0.5, 0.7])
    1.0
    """
    differences = _differences(a, b)
    differences = differences[differences != 0]
    n = len(differences)
    if n == 0:
        return 1.0
    # A sum that equals the observed one up to rounding counts as equally extreme.
    whole_number("num_flips", num_flips, at_least=1)
    observed = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()
    generator = seeded(random_state)
    flips_per_block = max(1, _CELLS_PER_BLOCK // n)
    as_extreme = 0
    for first in range(0, num_flips, flips_per_block):
        size = min(flips_per_block, num_flips - first)
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


@checked_kinds
def holm(p_values: Sequence[float]) -> NDArray[np.float64]:
    """p-values adjusted for the number of comparisons (Holm 1979).

    The i-th smallest of m p-values is multiplied by m - i + 1; adjusted values are at most 1 and never decrease with i.

    Parameters
    ----------
    p_values
        The p-values of all comparisons.

    >>> holm([0.01, 0.04, 0.03]).tolist()  # 3 * 0.01, 2 * 0.03, then 1 * 0.04 raised to 0.06
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


def _differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """a - b without the queries that are NaN on either side."""
    of_a, of_b = as_float64("a", a), as_float64("b", b)
    if of_a.ndim != 1 or of_a.shape != of_b.shape:
        raise RankPolicyError(
            f"a paired test needs one value per query for the same queries, shape (query,); got shapes {of_a.shape} and {of_b.shape}."
        )
    return (of_a - of_b)[~(np.isnan(of_a) | np.isnan(of_b))]
