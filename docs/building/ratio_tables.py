"""Ratios that ``python -m benchmarks --keep`` left, as Markdown tables: times, and how close estimates come to the truth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

ESTIMATES = ("click_recovery", "gradient_variance")
POSITION_BIAS = "position_bias"

Ratio = Mapping[str, Any]


def ratio_tables(ratios: Sequence[Ratio]) -> list[str]:
    """Paragraphs and tables of all ratios; those under their floor are bold.

    Parameters
    ----------
    ratios
        Each with its benchmark, name, ratio and floor, and what is divided by what.
    """
    of = {kind: [one for one in ratios if _kind(one) == kind] for kind in ("times", "estimates", POSITION_BIAS)}
    parts = []
    if of["times"]:
        parts += [
            "The time of another program divided by ours, or what the line says. Both were timed side by side in one process, "
            "medians of interleaved repeats. The floor was set before it was measured; a ratio under it is bold.",
            _table(of["times"]),
        ]
    if of["estimates"]:
        parts += ["How close estimates come: more is better here too.", _table(of["estimates"])]
    if of[POSITION_BIAS]:
        parts += [
            "Position bias from a million simulated sessions whose propensities are 1 / rank^η: 3 % divided by the largest relative "
            "error over all ranks, so 1 is an error of 3 %. With ten positions and η = 2 the last rank has 4,000 clicks, and no "
            "unbiased method without features has a standard error under 1.8 % there.",
            _position_bias_table(of[POSITION_BIAS]),
        ]
    return parts


def _kind(one: Ratio) -> str:
    benchmark = one.get("benchmark")
    return POSITION_BIAS if benchmark == POSITION_BIAS else "estimates" if benchmark in ESTIMATES else "times"


def _table(ratios: Sequence[Ratio]) -> str:
    lines = [
        f"| {_cell(one['name'])} | {_cell(one.get('what') or '')} | {_shown(one)} | {one['floor']:g} |"
        for one in ratios
    ]
    return "| name | what is divided by what | ratio | floor |\n|---|---|---|---|\n" + "\n".join(lines)


def _position_bias_table(ratios: Sequence[Ratio]) -> str:
    cells: dict[str, dict[str, str]] = {}
    for one in ratios:
        found = re.fullmatch(r"(.+)-eta-(.+)-positions-(.+)", one["name"])
        assert found is not None, one["name"]
        method, eta, positions = found.groups()
        cells.setdefault(method, {})[f"{positions} positions, η = {eta}"] = _shown(one)
    columns = list(next(iter(cells.values())))
    head = f"| method | {' | '.join(columns)} |\n" + "|---" * (len(columns) + 1) + "|\n"
    return head + "\n".join(
        f"| {method} | {' | '.join(row.get(column, '') for column in columns)} |" for method, row in cells.items()
    )


def _shown(one: Ratio) -> str:
    text = f"{one['ratio']:,.0f}" if one["ratio"] >= 100 else f"{one['ratio']:.3g}"
    return text if one["ratio"] >= one["floor"] else f"**{text}**"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("$", "\\$").replace("<", "&lt;")
