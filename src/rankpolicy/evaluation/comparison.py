"""Significance tests of the differences between rankers: all pairs, all metrics, adjusted for the number of comparisons.

Paired tests of two rankers on the same queries: two-sided p-values of the hypothesis that they do equally well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.declarations.arguments import as_float64, checked_kinds, seeded, whole_number
from rankpolicy.evaluation.table import MetricTable
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError, unknown_name

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """One significance test of two rankers on one metric.

    Parameters
    ----------
    a, b
        Names of the two rankers.
    metric
        Name of the metric.
    test
        Name of the test, a key of TESTS.
    difference
        Mean of a minus mean of b over queries.
    p
        Two-sided p-value of the hypothesis that both rankers do equally well.
    p_holm
        The p-value adjusted by Holm's method over all comparisons made with this test: of all pairs, or only of those with a baseline.
    """

    a: str
    b: str
    metric: str
    test: str
    difference: float
    p: float
    p_holm: float


@checked_kinds
def compare_tables(
    tables: Mapping[str, MetricTable],
    *,
    tests: Sequence[str] = tuple(TESTS),
    baseline: str | None = None,
    random_state: int = 0,
) -> list[PairedComparison]:
    """Test which rankers differ: paired tests of all pairs of rankers, or of all rankers with a baseline, on all metrics, query by query.

    p-values are adjusted by Holm's method over all comparisons of one test, so that testing many pairs does not produce differences by
    chance. With a baseline there are fewer comparisons, and the adjustment costs less power.

    Parameters
    ----------
    tables
        What ``evaluate`` returned for each ranker, by its name. All must have the same queries, metrics and conventions, and no query
        weights.
    tests
        Names of the tests: "t-test", "wilcoxon", "fisher-randomization". The default is all three.
    baseline
        Name of the ranker that every other one is compared with; differences are those of the other ranker minus the baseline. None (the
        default) compares all pairs. Choose it before looking at the results.
    random_state
        Seed of the tests that draw at random (fisher-randomization).

    Returns
    -------
    list of PairedComparison
        One per test, pair of rankers and metric: the mean difference, its p-value, and the adjusted p-value ``p_holm``.

    >>> ids = np.array(["q1", "q2", "q3"])
    >>> ours = MetricTable(query_ids=ids, names=("ap",), values=np.array([[0.5], [0.7], [0.9]]))
    >>> theirs = MetricTable(query_ids=ids, names=("ap",), values=np.array([[0.4], [0.5], [0.6]]))
    >>> [comparison] = compare_tables({"ours": ours, "theirs": theirs}, tests=["wilcoxon"])
    >>> round(comparison.difference, 6), comparison.p
    (0.2, 0.25)
    """
    _check_comparable(tables)
    for test in tests:
        if test not in TESTS:
            raise RankPolicyError(unknown_name("test", test, TESTS))
    if baseline is not None and baseline not in tables:
        raise RankPolicyError(unknown_name("baseline", baseline, tables))
    names = next(iter(tables.values())).names
    pairs = (
        list(combinations(tables, 2))
        if baseline is None
        else [(other, baseline) for other in tables if other != baseline]
    )
    cases = [(a, b, metric) for a, b in pairs for metric in names]
    comparisons = []
    for test in tests:
        p_values = [
            TESTS[test](tables[a][metric], tables[b][metric], random_state=random_state) for a, b, metric in cases
        ]
        for (a, b, metric), p, adjusted in zip(cases, p_values, holm(p_values), strict=True):
            difference = tables[a].means[metric] - tables[b].means[metric]
            comparisons.append(
                PairedComparison(a=a, b=b, metric=metric, test=test, difference=difference, p=p, p_holm=float(adjusted))
            )
    return comparisons


def _check_comparable(tables: Mapping[str, MetricTable]) -> None:
    if len(tables) < 2:
        raise RankPolicyError(f"a comparison needs at least two tables; got {len(tables)}.")
    (first, reference), *remaining = tables.items()
    if any(table.query_weights is not None for table in tables.values()):
        raise RankPolicyError(
            "paired tests do not support query weights; compare the intervals of the weighted means instead."
        )
    for name, table in remaining:
        if not np.array_equal(table.query_ids, reference.query_ids):
            num_shared = len(np.intersect1d(table.query_ids, reference.query_ids))
            raise RankPolicyError(
                f"tables must measure the same queries in the same order; {first!r} has {len(reference)} and "
                f"{name!r} has {len(table)} queries, {num_shared} of them in both. "
                "Evaluate all rankers on one dataset."
            )
        if table.names != reference.names or table.conventions != reference.conventions:
            raise RankPolicyError(
                f"tables must have the same metrics and conventions; {first!r} has "
                f"{', '.join(reference.names)} with {reference.conventions!r}, {name!r} has "
                f"{', '.join(table.names)} with {table.conventions!r}. Evaluate all rankers with one call's settings."
            )
