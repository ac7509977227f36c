"""Figure 3a: dcmKL-UCB against bandits that use one click of each list; beyond the paper, bandits with even less regret."""

from __future__ import annotations

from rankpolicy.simulation import Problem, Simulation, dcm_lower_bound_problem, lower_bound
from reproductions.dcm.published import FIGURE_3A, FIGURE_3A_STEPS
from reproductions.paired import t_interval
from reproductions.regret_cells import Published, agrees, logarithmic, lower, regret_row, simulate_cells
from reproductions.statements import Claim
from reproductions.target import Outcome, Setup

SMALLEST = "the proposed dcmKL-UCB reaches the smallest regret!"
GROWTH = "the proposed method reaches O(log n) on the whole"
OURS = "dcm-kl-ucb"
NUM_RUNS = 200  # a difference of 5 % is 8: with fewer runs our own noise decides
PAST_THE_PAPER = {
    "dcm-ts": 65.0,
    "dcm-kl-ucb-log": 110.0,
}  # highest regret after 100,000 steps that is still past the paper


def problem() -> Problem:
    """B_LB(L = 16, A* = [4], p = 0.2, Δ = 0.15, γ = 0.5), of Figures 3a and 3b (talk, experiment 2)."""
    return dcm_lower_bound_problem(16, 4, best=0.2, gap=0.15, termination=0.5)


def run(setup: Setup) -> Outcome:
    from rankpolicy.reports.simulation_figures import regret_figure

    cell = problem().name
    bandits = [*FIGURE_3A, *PAST_THE_PAPER]
    found = simulate_cells(bandits, {cell: problem()}, setup, steps=FIGURE_3A_STEPS, num_runs=NUM_RUNS)[cell]
    points = [
        (bandit, step, Published(regret=regret))
        for bandit, curve in FIGURE_3A.items()
        for step, regret in zip(FIGURE_3A_STEPS, curve, strict=True)
        if step <= found.steps[-1]
    ]
    bound = lower_bound(found.problems[0], found.steps)
    theory = {} if bound is None else {"lower bound, Theorem 3": bound}  # Theorem 1's is six times the regret
    return Outcome(
        rows=(
            *(regret_row(cell, bandit, found, step=step, published=theirs) for bandit, step, theirs in points),
            *(regret_row(cell, bandit, found) for bandit in PAST_THE_PAPER),
        ),
        claims=(
            *(agrees(cell, bandit, found, theirs, step=step) for bandit, step, theirs in points),
            *(
                lower(cell, found, OURS, other, paper=SMALLEST, published=FIGURE_3A[other][-1] - FIGURE_3A[OURS][-1])
                for other in FIGURE_3A
                if other != OURS
            ),
            logarithmic(cell, found, OURS, paper=GROWTH, published=published_slowing()),
            *(_past_the_paper(found, bandit, most) for bandit, most in PAST_THE_PAPER.items()),
        ),
        figures={"regret": regret_figure(found, title=cell, theory=theory)},
    )


def _past_the_paper(found: Simulation, bandit: str, most: float) -> Claim:
    interval = t_interval(found.regrets[bandit][:, -1])
    return Claim(
        claim=f"past the paper: regret of {bandit} is at most {most:g}",
        paper=f"dcmKL-UCB has {FIGURE_3A[OURS][-1]}",
        ours=f"{interval.mean:.1f} ± {found.standard_error(bandit)[-1]:.1f}",
        low=interval.low,
        high=interval.high,
        at_most=most,
    )


def published_slowing() -> float:
    """How much less the printed curve adds from 10,000 to 100,000 steps than from 1,000 to 10,000."""
    early, middle, late = (FIGURE_3A[OURS][FIGURE_3A_STEPS.index(step)] for step in (1_000, 10_000, 100_000))
    return round(2 * middle - early - late, 6)
