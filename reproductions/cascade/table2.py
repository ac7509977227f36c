"""Table 2: the same lists upside down, the best item last."""

from __future__ import annotations

from functools import partial

from rankpolicy.bandits import CascadeKLUCB, CascadeUCB1
from rankpolicy.simulation import Simulation
from rankpolicy.simulation.runs import MakeBandit
from reproductions.cascade.cells import NAMES, NUM_RUNS, problems, regret_figures
from reproductions.regret_cells import less, regret_row, simulate_cells
from reproductions.target import Outcome, Setup

# The list is shown "in increasing order of the index, best item last". The reward depends only on the set of items, so the order costs
# nothing, and clicks on uncertain items at the top reveal more about them. The numbers of this table are not available.
ORDERS: dict[str, dict[str, MakeBandit]] = {
    kind.name: {kind.name: kind, f"{kind.name}, best last": partial(kind, best_last=True)}
    for kind in (CascadeUCB1, CascadeKLUCB)
}
LESS = "its numbers are not at hand; to expect, since the reward does not depend on order and the first items are observed most"


def run(setup: Setup) -> Outcome:
    makers = {name: maker for orders in ORDERS.values() for name, maker in orders.items()}
    found = simulate_cells(makers, problems(), setup, num_runs=NUM_RUNS)
    upside_down = tuple(list(orders)[1] for orders in ORDERS.values())
    return Outcome(
        rows=tuple(
            regret_row(name, bandit, found[name]) | _share(found[name], first, bandit)
            for name in NAMES.values()
            for first, bandit in ORDERS.values()
        ),
        claims=tuple(
            less(
                f"{name}: {first} has less regret with the best item last",
                found[name].regrets[last][:, -1],
                found[name].regrets[first][:, -1],
                paper=LESS,
            )
            for name in NAMES.values()
            for first, last in ORDERS.values()
        ),
        figures=regret_figures(found, upside_down, "best item last"),
    )


def _share(simulation: Simulation, first: str, last: str) -> dict[str, float]:
    """Regret with the best item first, and the share of it that the best item last has."""
    other = float(simulation.mean(first)[-1])
    return {"best_first": round(other, 2), "share": round(float(simulation.mean(last)[-1]) / other, 3)}
