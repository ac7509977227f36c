"""The summary as Markdown tables, to be pasted into a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.quality.cells import METRICS
from benchmarks.quality.methods import OURS
from benchmarks.quality.sets import group_of
from rankpolicy.optional import require

RIVAL = "CatBoost, best of nine"  # the nearest competitor, whose differences are shown by group of sets
_TITLES = {"ndcg@10": "NDCG@10", "map": "MAP"}


def markdown(result: dict[str, Any]) -> str:
    """A table of means for each metric, then the differences to AutoRanker."""
    lines = [line for metric in METRICS for line in [*_means(result, metric), ""]] + _differences(result)
    return "\n".join([*lines, "", groups_table(result)] if RIVAL in result["ahead"] else lines)


def short_table(result: dict[str, Any]) -> str:
    """Means over sets, and pooled differences to AutoRanker with 95 % intervals over queries and over sets."""
    lines = [
        f"| mean over {len(result['num_queries'])} sets | NDCG@10 | MAP | {OURS} minus it, NDCG@10, over queries | over sets | CPU s |"
    ]
    lines.append("|---" * 6 + "|")
    for method, by_set in result["means"].items():
        means = [_shown(sum(each[metric] for each in by_set.values()) / len(by_set)) for metric in METRICS]
        ahead = _pooled(result["ahead"][method]["ndcg@10"]["sets"].values()) if method in result["ahead"] else ("", "")
        lines.append(f"| {method} | {' | '.join([*means, *ahead])} | {result['cpu_seconds'][method]:,.0f} |")
    return "\n".join(lines)


def groups_table(result: dict[str, Any]) -> str:
    """How far AutoRanker is ahead of its nearest competitor in NDCG@10, by group of sets."""
    sets = result["ahead"][RIVAL]["ndcg@10"]["sets"]
    groups: dict[str, list[list[float]]] = {}
    for name, difference in sets.items():
        groups.setdefault(group_of(name), []).append(difference)
    lines = [f"| sets | number | {OURS} minus {RIVAL}, NDCG@10, over queries | over sets |", "|---" * 4 + "|"]
    lines += [
        _row(group, [str(len(differences)), *_pooled(differences)])
        for group, differences in [*groups.items(), ("all", list(sets.values()))]
    ]
    return "\n".join(lines)


def _pooled(differences: Iterable[list[float]]) -> tuple[str, str]:
    """The mean of differences of sets with its 95 % interval over queries; and that over sets, as if these were drawn at random."""
    means, errors = np.array(list(differences)).T
    mean, over_queries = means.mean(), 1.96 * np.sqrt((errors**2).sum()) / len(means)
    over_sets = ""
    if len(means) > 1:
        quantile = require("scipy.special", "An interval over sets").stdtrit(len(means) - 1, 0.975)
        over_sets = f"± {quantile * means.std(ddof=1) / np.sqrt(len(means)):.4f}"
    return f"{mean:+.4f} [{mean - over_queries:+.4f}, {mean + over_queries:+.4f}]", over_sets


def _means(result: dict[str, Any], metric: str) -> list[str]:
    means, methods = result["means"], list(result["means"])
    lines = [f"| {_TITLES[metric]} | {' | '.join(methods)} |", "|---" * (len(methods) + 1) + "|"]
    for name, num_queries in result["num_queries"].items():
        values = [means[method][name][metric] for method in methods]
        lines.append(_row(f"{name} ({num_queries})", [_shown(value, is_best=value == max(values)) for value in values]))
    averages = [sum(each[metric] for each in means[method].values()) / len(means[method]) for method in methods]
    lines.append(_row("**mean**", [_shown(value, is_best=value == max(averages)) for value in averages]))
    lines.append(_row("mean rank", [f"{result['mean_rank'][method]:.1f}" for method in methods]))
    lines.append(_row("CPU s", [f"{result['cpu_seconds'][method]:,.0f}" for method in methods]))
    return lines


def _row(title: str, cells: list[str]) -> str:
    return f"| {title} | {' | '.join(cells)} |"


def _differences(result: dict[str, Any]) -> list[str]:
    lines = [
        f"| {OURS} minus | {' | '.join(_TITLES[metric] for metric in METRICS)} | behind by two standard errors on |"
    ]
    lines.append("|---" * (len(METRICS) + 2) + "|")
    for other, by_metric in result["ahead"].items():
        cells = [f"{by_metric[metric]['pooled'][0]:+.4f} ± {by_metric[metric]['pooled'][1]:.4f}" for metric in METRICS]
        behind = sorted({name for metric in METRICS for name in by_metric[metric]["behind_by_two_standard_errors"]})
        lines.append(f"| {other} | {' | '.join(cells)} | {', '.join(behind) or 'none'} |")
    lines += [
        f"\n{test['set']}, {OURS} against {test['other']}, NDCG@10: p = {test['p']:.2g}, {test['p_holm']:.2g} after Holm's correction."
        for test in result["tests"]
    ]
    return lines


def _shown(value: float, *, is_best: bool = False) -> str:
    text = f"{value:.4f}".removeprefix("0")
    return f"**{text}**" if is_best else text
