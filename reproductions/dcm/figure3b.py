"""Figure 3b: dcmKL-UCB against RankedKL-UCB, which learns separately at each position."""

from __future__ import annotations

from reproductions.dcm.figure3a import GROWTH, OURS, SMALLEST, problem
from reproductions.regret_cells import RUNS_OF_THE_PAPERS, logarithmic, lower, regret_row, simulate_cells
from reproductions.target import Claim, Outcome, Setup

RANKED = "ranked-kl-ucb"
# "RankedKL-UCB, O(KL), differs by a factor of K = 4": about, here as a half more or less.
FACTOR, LEAST_FACTOR, MOST_FACTOR = 4, 2.0, 6.0


def run(setup: Setup) -> Outcome:
    from rankpolicy.reports.regret_figure import regret_figure

    cell = problem().name
    found = simulate_cells([OURS, RANKED], {cell: problem()}, setup, num_runs=RUNS_OF_THE_PAPERS)[cell]
    factor = float(found.mean(RANKED)[-1] / found.mean(OURS)[-1])
    return Outcome(
        rows=tuple(regret_row(cell, bandit, found) for bandit in (OURS, RANKED)),
        claims=(
            lower(cell, found, OURS, RANKED, paper=SMALLEST),
            Claim(
                claim=f"{RANKED} has about K = {FACTOR} times the regret of {OURS}",
                paper="the difference to RankedKL-UCB, which is O(KL), is a factor of K = 4",
                ours=f"{factor:.2f} times",
                holds=LEAST_FACTOR <= factor <= MOST_FACTOR,
            ),
            logarithmic(cell, found, OURS, paper=GROWTH),
        ),
        figures={"regret": regret_figure(found, title=cell)},
    )
