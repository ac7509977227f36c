"""From values per query to means, ranks, and differences to AutoRanker with standard errors and p-values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.cells import METRICS, Cell, kept
from benchmarks.quality.methods import OURS
from benchmarks.quality.sets import SEEDS, SHARES_TEST_DATA
from rankpolicy.evaluation.comparison import holm, paired_t_test

Values = dict[tuple[str, str], NDArray[np.float64]]  # by set and method: (query, metric)


def values_of(cells: list[Cell], folder: Path, stage: str) -> tuple[Values, dict[str, float]]:
    """Values per query, and seconds of CPU by method.

    Seeds are averaged per query, and so are the splits of a set whose test queries are the same; other folds have different queries.
    """
    found: dict[tuple[str, str], dict[int, list[NDArray[np.float64]]]] = {}
    seconds: dict[str, float] = {}
    for cell in cells:
        values, spent = kept(cell, folder)
        found.setdefault((cell.set, cell.method), {}).setdefault(cell.fold, []).append(values)
        seconds[cell.method] = seconds.get(cell.method, 0.0) + spent
    averaged: Values = {}
    for (name, method), by_fold in found.items():
        folds = [np.mean(by_fold[fold], axis=0) for fold in sorted(by_fold)]
        is_shared = stage == "test" and name in SHARES_TEST_DATA
        averaged[name, method] = np.mean(folds, axis=0) if is_shared else np.concatenate(folds)
    return averaged, seconds


def summary(values: Values, seconds: dict[str, float]) -> dict[str, Any]:
    """Means, mean ranks and cost of all methods, and how far AutoRanker is ahead of each of the others."""
    sets = list(dict.fromkeys(name for name, _ in values))
    methods = list(dict.fromkeys(method for _, method in values))
    means = {
        method: {
            name: dict(zip(METRICS, np.nanmean(values[name, method], axis=0).round(5).tolist(), strict=True))
            for name in sets
        }
        for method in methods
    }
    others = [method for method in methods if method != OURS and OURS in methods]
    return {
        "num_queries": {name: int((~np.isnan(values[name, methods[0]][:, 0])).sum()) for name in sets},
        "means": means,
        "mean_rank": {method: _mean_rank(method, means) for method in methods},
        "cpu_seconds": {method: round(seconds[method], 1) for method in methods},
        "ahead": {other: ahead(values, sets, other) for other in others},
        "tests": tests(values, [other for other in others if other.startswith("LambdaMART")]),
    }


def _mean_rank(method: str, means: dict[str, dict[str, dict[str, float]]]) -> float:
    ranks = [
        1 + sum(means[other][name][metric] > means[method][name][metric] for other in means)
        for name in means[method]
        for metric in METRICS
    ]
    return float(np.mean(ranks))


def ahead(values: Values, sets: list[str], other: str) -> dict[str, Any]:
    """How far AutoRanker is ahead: by set, and pooled with the same weight for every set, each with its standard error over queries."""
    found: dict[str, Any] = {}
    for column, metric in enumerate(METRICS):
        by_set = {}
        for name in sets:
            difference = (values[name, OURS] - values[name, other])[:, column]
            difference = difference[~np.isnan(difference)]
            by_set[name] = [float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))]
        over_queries = float(np.sqrt(np.sum([error**2 for _, error in by_set.values()])) / len(by_set))
        means = [mean for mean, _ in by_set.values()]
        over_sets = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else None
        found[metric] = {
            "pooled": [float(np.mean(means)), over_queries],
            "standard_error_over_sets": over_sets,
            "sets": by_set,
            "behind_by_two_standard_errors": [name for name, (mean, error) in by_set.items() if mean < -2 * error],
        }
    return found


def tests(values: Values, others: list[str]) -> list[dict[str, Any]]:
    """Paired t-tests in NDCG@10 on the sets with several seeds, corrected for their number (Holm)."""
    pairs = [(name, other) for name in SEEDS for other in others if (name, other) in values]
    p_values = [paired_t_test(values[name, OURS][:, 0], values[name, other][:, 0]) for name, other in pairs]
    corrected = holm(p_values) if p_values else []
    return [
        {"set": name, "other": other, "p": p, "p_holm": float(q)}
        for (name, other), p, q in zip(pairs, p_values, corrected, strict=True)
    ]
