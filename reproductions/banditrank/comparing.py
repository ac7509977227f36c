"""Claims over several splits or seeds: queries are paired, each with its mean over the runs that test it, and the runs are shown beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankpolicy.evaluation import MetricTable, compare_tables
from reproductions.paired import better, t_interval
from reproductions.statements import Claim

Runs = Sequence[MetricTable]  # of one method, one table per run (split or seed)


def once_per_query(runs: Runs) -> MetricTable:
    """One row per query, its mean over the runs that test it: a query that several splits test is still one witness."""
    values = np.concatenate([run.values for run in runs])
    query_ids, places = np.unique(np.concatenate([run.query_ids for run in runs]), return_inverse=True)
    sums = np.zeros((len(query_ids), values.shape[1]))
    np.add.at(sums, places, values)
    return MetricTable(query_ids=query_ids, names=runs[0].names, values=sums / np.bincount(places)[:, None])


def run_means(runs: Runs, metric: str) -> list[float]:
    """The mean over queries of each run."""
    return [float(np.nanmean(run[metric])) for run in runs]


def above(
    claim: str,
    ours: Runs,
    theirs: Runs,
    *,
    metric: str,
    paper: str,
    run: str,
    unit: str = "queries",
    published: float | None = None,
) -> Claim:
    """That the method of ``ours`` has the higher metric: the 95 % interval of the paired differences of queries lies above zero.

    Parameters
    ----------
    claim
        The statement.
    ours, theirs
        One table per run, the same runs in the same order.
    metric
        The metric.
    paper
        The words or the numbers of the paper.
    run
        What a run is, in the plural: "splits", "seeds". The interval of the claim covers both that over queries and that over runs, so
        that a claim which flips with the seed does not hold.
    unit
        What is paired, in the plural.
    published
        The difference of the paper's own numbers, where it has both.
    """
    tables = once_per_query(ours)[metric], once_per_query(theirs)[metric]
    return over_runs(
        better(claim, *tables, paper=paper, unit=unit, published=published), ours, theirs, metric=metric, run=run
    )


def over_runs(claim: Claim, ours: Runs, theirs: Runs, *, metric: str, run: str) -> Claim:
    """A claim about differences of queries whose interval also covers that over runs, with how many of these agree."""
    differences = np.subtract(run_means(ours, metric), run_means(theirs, metric))
    agreeing = f"{claim.ours}; higher on {(differences > 0).sum()} of {len(differences)} {run}"
    if len(differences) < 2:
        return replace(claim, ours=agreeing)
    found = t_interval(differences)
    assert claim.low is not None, "queries were compared"
    assert claim.high is not None, "queries were compared"
    return replace(
        claim,
        ours=f"{agreeing}, mean of {run} {found}",
        low=min(claim.low, found.low),
        high=max(claim.high, found.high),
    )


def above_in_all(
    claim: str, ours: Runs, theirs: Runs, *, metrics: Sequence[str], paper: str, tests: Sequence[str] = ("t-test",)
) -> Claim:
    """That the method of ``ours`` is higher in every one of these metrics, significantly (p < 0.05) by every one of these tests.

    The interval is that of the number of metrics: those that are significantly higher, and those that are not significantly lower.

    Parameters
    ----------
    claim
        The statement.
    ours, theirs
        One table per run.
    metrics
        The metrics.
    paper
        The words or the numbers of the paper.
    tests
        Paired tests over queries: "t-test", "wilcoxon".
    """
    tables = {"ours": once_per_query(ours), "theirs": once_per_query(theirs)}
    found = [each for each in compare_tables(tables, tests=list(tests)) if each.metric in metrics]
    differences = {name: float(np.nanmean(tables["ours"][name] - tables["theirs"][name])) for name in metrics}
    differing = [name for name in metrics if all(each.p < 0.05 for each in found if each.metric == name)]
    significant = [name for name in differing if differences[name] > 0]
    listed = ", ".join(f"{name} {difference:+.4f}" for name, difference in differences.items())
    return Claim(
        claim=claim,
        paper=paper,
        ours=f"significant in {len(significant)} of {len(metrics)} ({' '.join(significant) or 'none'}); differences {listed}",
        low=len(significant),
        high=len(metrics) - (len(differing) - len(significant)),
        at_least=len(metrics),
    )
