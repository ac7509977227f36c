"""Figure 2b: regret of dcmKL-UCB as the number of positions and the probability to stop after a click change."""

from __future__ import annotations

from typing import Any

from rankpolicy.simulation import Simulation, dcm_lower_bound_problem, lower_bound, upper_bound
from reproductions.paired import t_interval
from reproductions.regret_cells import less, regret_row, simulate_cells
from reproductions.statements import Claim
from reproductions.target import Outcome, Setup

# "L = 10, Δ = 0.15 fixed, K, γ varied" (talk, experiment 1). The talk's L = 10 is a slip: the paper has L = 16. The values of K and γ are
# not printed in the talk; these are Figure 2a's K and γ in fifths.
ITEMS, BEST, GAP, BANDIT = 16, 0.2, 0.15, "dcm-kl-ucb"
CUTOFFS, TERMINATIONS = (2, 4, 8), (0.2, 0.4, 0.6, 0.8, 1.0)
BOUND = "Theorem 1, O(γ (L - K) log n), could be confirmed to some extent"


def run(setup: Setup) -> Outcome:
    cutoffs, terminations = (CUTOFFS[:2], TERMINATIONS[::4]) if setup.is_smoke else (CUTOFFS, TERMINATIONS)
    names = {(cutoff, gamma): f"K={cutoff} γ={gamma:g}" for cutoff in cutoffs for gamma in terminations}
    problems = {
        name: dcm_lower_bound_problem(ITEMS, cutoff, best=BEST, gap=GAP, termination=gamma)
        for (cutoff, gamma), name in names.items()
    }
    found = simulate_cells([BANDIT], problems, setup)
    cells = {cell: found[name] for cell, name in names.items()}
    return Outcome(
        rows=tuple(
            regret_row(name, BANDIT, found[name])
            | {"lower_bound": _bound(lower_bound, found[name]), "upper_bound": _bound(upper_bound, found[name])}
            for name in names.values()
        ),
        claims=(
            *(_within(name, found[name]) for name in names.values()),
            *(_grows(cutoff, cells) for cutoff in cutoffs),
        ),
        figures={"regret": _figure(cells)},
    )


def _grows(cutoff: int, cells: dict[tuple[int, float], Simulation]) -> Claim:
    own = {gamma: cell.regrets[BANDIT][:, -1] for (of, gamma), cell in cells.items() if of == cutoff}
    lowest, highest = min(own), max(own)
    claim = f"K = {cutoff}: more regret at γ = {highest:g} than at {lowest:g}"
    return less(claim, own[lowest], own[highest], paper=BOUND)


def _bound(bound: Any, simulation: Simulation) -> float:
    return round(float(bound(simulation.problems[0], simulation.steps)[-1]), 1)


def _within(name: str, simulation: Simulation) -> Claim:
    low, high = _bound(lower_bound, simulation), _bound(upper_bound, simulation)
    found = t_interval(simulation.regrets[BANDIT][:, -1])
    above = (
        "Proposition 1" if name.endswith("γ=1") else "Theorem 1"
    )  # users who stop at the first click: the tighter bound
    return Claim(
        claim=f"{name}: regret between the bounds of Theorem 3 and {above}",
        paper=f"{low} to {high}",
        ours=f"{found.mean:.1f}",
        low=found.low,
        high=found.high,
        at_least=low,
        at_most=high,
    )


def _figure(cells: dict[tuple[int, float], Simulation]) -> Any:
    from rankpolicy.reports import figures

    with figures.style():
        figure = figures.new_figure(6.4, 4.6)
        axes = figure.add_subplot()
        for colour, cutoff in zip(figures.colours(), dict.fromkeys(cutoff for cutoff, _ in cells), strict=False):
            own = {gamma: cell for (of, gamma), cell in cells.items() if of == cutoff}
            axes.errorbar(
                list(own),
                [cell.mean(BANDIT)[-1] for cell in own.values()],
                [cell.standard_error(BANDIT)[-1] for cell in own.values()],
                color=colour,
                marker="o",
                markersize=4,
                label=f"K = {cutoff}",
            )
            bounds = [_bound(lower_bound, cell) for cell in own.values()]
            axes.plot(list(own), bounds, ":", color=colour, label=f"K = {cutoff}, lower bound")
        axes.set_xlabel("γ, the probability to stop after a click")
        axes.set_ylabel(f"regret of {BANDIT} after {next(iter(cells.values())).steps[-1]:,} steps")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=9)
        return figure
