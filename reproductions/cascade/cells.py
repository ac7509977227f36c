"""The nine problems of both tables."""

from __future__ import annotations

from typing import Any

from rankpolicy.simulation import Problem, Simulation, cascade_lower_bound_problem
from reproductions.cascade.published import TABLE_1
from reproductions.regret_cells import as_lines

NUM_RUNS = 100
BANDITS = ("cascade-ucb1", "cascade-kl-ucb")
Cell = tuple[int, int, float]  # items, positions, gap

NAMES: dict[Cell, str] = {cell: f"L={cell[0]} K={cell[1]} Δ={cell[2]:g}" for cell in TABLE_1}


def problems() -> dict[str, Problem]:
    """The nine combinations of L = 16, 32; K = 2, 4, 8; Δ = 0.15, 0.075 that the tables have; p = 0.2."""
    return {
        name: cascade_lower_bound_problem(items, cutoff, best=0.2, gap=gap)
        for (items, cutoff, gap), name in NAMES.items()
    }


def regret_figures(found: dict[str, Simulation], bandits: tuple[str, ...], title: str) -> dict[str, Any]:
    """One figure per bandit, with one line per problem."""
    from rankpolicy.reports.simulation_figures import regret_figure

    return {bandit: regret_figure(as_lines(found, bandit), title=f"{bandit}, {title}") for bandit in bandits}
