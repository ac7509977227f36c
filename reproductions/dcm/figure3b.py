"""Figure 3b: dcmKL-UCB against RankedKL-UCB, which learns separately at each position."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reproductions.dcm.figure3a import GROWTH, OURS, SMALLEST, problem, published_slowing
from reproductions.dcm.published import FIGURE_3A, FIGURE_3A_STEPS
from reproductions.paired import t_interval
from reproductions.regret_cells import Published, agrees, logarithmic, lower, regret_row, simulate_cells
from reproductions.statements import Claim
from reproductions.target import Outcome, Setup

RANKED = "ranked-kl-ucb"
NUM_RUNS = 100
FACTOR = 4  # "RankedKL-UCB, O(KL), differs by a factor of K = 4"


def run(setup: Setup) -> Outcome:
    from rankpolicy.reports.simulation_figures import regret_figure

    cell = problem().name
    found = simulate_cells([OURS, RANKED], {cell: problem()}, setup, steps=FIGURE_3A_STEPS, num_runs=NUM_RUNS)[cell]
    # The curve of dcmKL-UCB is that of Figure 3a: the same problem. The one of RankedKL-UCB is not at hand.
    theirs = {
        step: Published(regret=regret)
        for step, regret in zip(FIGURE_3A_STEPS, FIGURE_3A[OURS], strict=True)
        if step <= found.steps[-1]
    }
    return Outcome(
        rows=(
            *(regret_row(cell, OURS, found, step=step, published=published) for step, published in theirs.items()),
            *(regret_row(cell, RANKED, found, step=step) for step in theirs),
        ),
        claims=(
            *(agrees(cell, OURS, found, published, step=step) for step, published in theirs.items()),
            lower(cell, found, OURS, RANKED, paper=SMALLEST),
            _factor(found.regrets[RANKED][:, -1], found.regrets[OURS][:, -1]),
            logarithmic(cell, found, OURS, paper=GROWTH, published=published_slowing()),
        ),
        figures={"regret": regret_figure(found, title=cell)},
    )


def _factor(ranked: NDArray[np.float64], ours: NDArray[np.float64]) -> Claim:
    """That regrets (run,) differ by a factor of 4, to the nearest whole number; the interval is that of log ratios run by run."""
    ratio = float(ranked.mean() / ours.mean())
    found = t_interval(np.log(ranked / ours))
    return Claim(
        claim=f"{RANKED} has K = {FACTOR} times the regret of {OURS}, to the nearest whole number",
        paper="the difference to RankedKL-UCB, which is O(KL), is a factor of K = 4",
        ours=f"{ratio:.2f} times; mean ratio of runs {np.exp(found.mean):.2f} [{np.exp(found.low):.2f}, {np.exp(found.high):.2f}]",
        low=float(np.exp(found.low)),
        high=float(np.exp(found.high)),
        at_least=FACTOR - 0.5,
        at_most=FACTOR + 0.5,
    )
