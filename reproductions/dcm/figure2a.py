"""Figure 2a: regret of dcmKL-UCB as the numbers of items and positions and the gap change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankpolicy.simulation import dcm_lower_bound_problem
from reproductions.dcm.published import FIGURE_2A
from reproductions.regret_cells import Published, agrees, as_lines, less, regret_row, simulate_cells
from reproductions.statements import Claim
from reproductions.target import Outcome, Setup

# "B_LB(L, A* = [K], p = 0.2, Δ, γ), γ = 0.8 fixed, L, K, Δ varied; steps n = 10^5" (talk, experiment 1).
BEST, TERMINATION, BANDIT = 0.2, 0.8, "dcm-kl-ucb"
CUTOFFS = (2, 4, 8)
Cell = tuple[int, int, float]  # items, positions, gap
BOUND = "the O(L - K) part of the upper bound shows"
GAP = "regret goes against Δ"


def run(setup: Setup) -> Outcome:
    from rankpolicy.reports.simulation_figures import regret_figure

    names = {cell: _name(*cell) for cell in FIGURE_2A}
    problems = {
        name: dcm_lower_bound_problem(items, cutoff, best=BEST, gap=gap, termination=TERMINATION)
        for (items, cutoff, gap), name in names.items()
    }
    found = simulate_cells([BANDIT], problems, setup)
    theirs = {names[cell]: Published(regret=regret) for cell, regret in FIGURE_2A.items()}
    return Outcome(
        rows=tuple(regret_row(name, BANDIT, found[name], published=theirs[name]) for name in problems),
        claims=(
            *(agrees(name, BANDIT, found[name], theirs[name]) for name in problems),
            *_orders({cell: found[name].regrets[BANDIT][:, -1] for cell, name in names.items()}),
        ),
        figures={"regret": regret_figure(as_lines(found, BANDIT), title=f"{BANDIT}, p = {BEST}, γ = {TERMINATION}")},
    )


def _orders(last: dict[Cell, NDArray[np.float64]]) -> Iterator[Claim]:
    """How regret (run,) at the last step changes with L, K and Δ."""

    def ordered(claim: str, few: Cell, many: Cell, paper: str) -> Claim:
        return less(claim, last[few], last[many], paper=paper, published=FIGURE_2A[many] - FIGURE_2A[few])

    for items, gap in ((16, 0.15), (32, 0.15), (16, 0.075)):
        for few, many in pairwise(CUTOFFS):
            claim = f"{items} items, Δ = {gap:g}: {few} positions have more regret than {many}"
            yield ordered(claim, (items, many, gap), (items, few, gap), BOUND)
    for cutoff in CUTOFFS:
        claim = f"{cutoff} positions, Δ = 0.15: 32 items have more regret than 16"
        yield ordered(claim, (16, cutoff, 0.15), (32, cutoff, 0.15), BOUND)
        claim = f"{cutoff} positions, 16 items: more regret at Δ = 0.075 than at 0.15"
        yield ordered(claim, (16, cutoff, 0.15), (16, cutoff, 0.075), GAP)


def _name(items: int, cutoff: int, gap: float) -> str:
    return f"L={items} K={cutoff} Δ={gap:g}"
