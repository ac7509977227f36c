"""Table 1: regret of CascadeUCB1 and CascadeKL-UCB by numbers of items and positions, and gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rankpolicy.simulation import Simulation
from reproductions.cascade.cells import BANDITS, NAMES, NUM_RUNS, Cell, problems, regret_figures
from reproductions.cascade.published import TABLE_1
from reproductions.regret_cells import agrees, less, regret_row, simulate_cells
from reproductions.statements import Claim
from reproductions.target import Outcome, Setup

UCB1, KL_UCB = BANDITS
PRINTED = "so in every row of the table"
BOUND = "the O(L - K) of the upper bound"


def run(setup: Setup) -> Outcome:
    found = simulate_cells(BANDITS, problems(), setup, num_runs=NUM_RUNS)
    cells = [(name, bandit, TABLE_1[cell][bandit]) for cell, name in NAMES.items() for bandit in BANDITS]
    return Outcome(
        rows=tuple(regret_row(name, bandit, found[name], published=theirs) for name, bandit, theirs in cells),
        claims=(*(agrees(name, bandit, found[name], theirs) for name, bandit, theirs in cells), *_orders(found)),
        figures=regret_figures(found, BANDITS, "best item first"),
    )


def _orders(found: Mapping[str, Simulation]) -> Iterator[Claim]:
    """How regret changes with the bandit, L, K and Δ."""

    def ordered(claim: str, few: tuple[Cell, str], many: tuple[Cell, str], paper: str) -> Claim:
        low, high = (found[NAMES[cell]].regrets[bandit][:, -1] for cell, bandit in (few, many))
        of_few, of_many = (TABLE_1[cell][bandit].regret for cell, bandit in (few, many))
        return less(claim, low, high, paper=paper, published=of_many - of_few)

    for cell, name in NAMES.items():
        yield ordered(f"{name}: {KL_UCB} has less regret than {UCB1}", (cell, KL_UCB), (cell, UCB1), PRINTED)
    for bandit in BANDITS:
        for items, gap in ((16, 0.15), (32, 0.15), (16, 0.075)):
            for few, many in ((2, 4), (4, 8)):
                claim = f"{bandit}, Δ = {gap:g}, {items} items: {few} positions have more regret than {many}"
                yield ordered(claim, ((items, many, gap), bandit), ((items, few, gap), bandit), BOUND)
    for bandit in BANDITS:
        for cutoff in (2, 4, 8):
            claim = f"{bandit}, Δ = 0.15, {cutoff} positions: 32 items have more regret than 16"
            yield ordered(claim, ((16, cutoff, 0.15), bandit), ((32, cutoff, 0.15), bandit), BOUND)
    for bandit in BANDITS:
        for cutoff in (2, 4, 8):
            claim = f"{bandit}, 16 items, {cutoff} positions: more regret at Δ = 0.075 than at 0.15"
            yield ordered(claim, ((16, cutoff, 0.15), bandit), ((16, cutoff, 0.075), bandit), PRINTED)
