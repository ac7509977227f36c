"""The summary as Markdown tables, to be pasted into a page."""

from __future__ import annotations

from typing import Any

from benchmarks.quality.cells import METRICS
from benchmarks.quality.methods import OURS

_TITLES = {"ndcg@10": "NDCG@10", "map": "MAP"}


def markdown(result: dict[str, Any]) -> str:
    """A table of means for each metric, then the differences to AutoRanker."""
    return "\n".join([line for metric in METRICS for line in [*_means(result, metric), ""]] + _differences(result))


def short_table(result: dict[str, Any]) -> str:
    """Means over sets, and pooled differences to AutoRanker with 95 % intervals."""
    lines = [f"| mean over {len(result['num_queries'])} sets | NDCG@10 | MAP | {OURS} minus it, NDCG@10 | CPU s |"]
    lines.append("|---" * 5 + "|")
    for method, by_set in result["means"].items():
        means = [_shown(sum(each[metric] for each in by_set.values()) / len(by_set)) for metric in METRICS]
        ahead = ""
        if method in result["ahead"]:
            mean, error = result["ahead"][method]["ndcg@10"]["pooled"]
            ahead = f"{mean:+.4f} [{mean - 1.96 * error:+.4f}, {mean + 1.96 * error:+.4f}]"
        lines.append(f"| {method} | {' | '.join(means)} | {ahead} | {result['cpu_seconds'][method]:,.0f} |")
    return "\n".join(lines)


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
