"""Significance tests of the differences between rankers: all pairs, all metrics, adjusted for the number of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.evaluation.significance import TESTS, holm
from rankpolicy.evaluation.table import MetricTable
from rankpolicy.types import RankPolicyError, unknown_name


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
