"""Table 1: regret of CascadeUCB1 and CascadeKL-UCB by numbers of items and positions, and gap."""

from __future__ import annotations

from reproductions.cascade.cells import BANDITS, NAMES, NUM_RUNS, problems, regret_figures
from reproductions.cascade.published import TABLE_1
from reproductions.regret_cells import agrees, less, lower, regret_row, simulate_cells
from reproductions.target import Outcome, Setup

UCB1, KL_UCB = BANDITS
PRINTED = "so in every row of the table"
BOUND = "the O(L - K) of the upper bound"


def run(setup: Setup) -> Outcome:
    found = simulate_cells(BANDITS, problems(), setup, num_runs=NUM_RUNS)
    cells = [(name, bandit, TABLE_1[cell][bandit]) for cell, name in NAMES.items() for bandit in BANDITS]
    last = {(cell, bandit): found[name].regrets[bandit][:, -1] for cell, name in NAMES.items() for bandit in BANDITS}
    return Outcome(
        rows=tuple(regret_row(name, bandit, found[name], published=theirs) for name, bandit, theirs in cells),
        claims=(
            *(agrees(name, bandit, found[name], theirs) for name, bandit, theirs in cells),
            *(lower(name, found[name], KL_UCB, UCB1, paper=PRINTED) for name in NAMES.values()),
            *(
                less(
                    f"{bandit}, Δ = {gap:g}, {items} items: {few} positions have more regret than {many}",
                    last[(items, many, gap), bandit],
                    last[(items, few, gap), bandit],
                    paper=BOUND,
                )
                for bandit in BANDITS
                for items, gap in ((16, 0.15), (32, 0.15), (16, 0.075))
                for few, many in ((2, 4), (4, 8))
            ),
            *(
                less(
                    f"{bandit}, Δ = 0.15, {cutoff} positions: 32 items have more regret than 16",
                    last[(16, cutoff, 0.15), bandit],
                    last[(32, cutoff, 0.15), bandit],
                    paper=BOUND,
                )
                for bandit in BANDITS
                for cutoff in (2, 4, 8)
            ),
            *(
                less(
                    f"{bandit}, 16 items, {cutoff} positions: more regret at Δ = 0.075 than at 0.15",
                    last[(16, cutoff, 0.15), bandit],
                    last[(16, cutoff, 0.075), bandit],
                    paper=PRINTED,
                )
                for bandit in BANDITS
                for cutoff in (2, 4, 8)
            ),
        ),
        figures=regret_figures(found, BANDITS, "best item first"),
    )
