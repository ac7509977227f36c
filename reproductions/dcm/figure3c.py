"""Figure 3c: users from a real log, one dependent click model per query."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from rankpolicy.bandits import BANDITS, DcmKLUCB
from rankpolicy.simulation import Problem, Simulation, mean_over_problems
from reproductions.dcm.figure3a import GROWTH, OURS, SMALLEST
from reproductions.dcm.yandex_users import (
    CUTOFF,
    NUM_QUERIES,
    OUT_OF_ORDER,
    cost_of_sorting,
    problem_of,
    queries_by_frequency,
    termination,
)
from reproductions.regret_cells import less, logarithmic, lower, regret_row, simulate_cells
from reproductions.statements import Claim
from reproductions.target import Outcome, Row, Setup

# "Models of the 20 most frequent queries of the Yandex dataset learned as DCM beforehand, and data made from them; K = 10, L is not
# given" (talk, experiment 3). Here: the 20 query-region pairs of the sample, all items of each, by EM.
NUM_STEPS, NUM_RUNS = 10_000, 50  # of each query
OTHERS = ("first-click", "last-click", "ranked-kl-ucb", "ranked-exp3")
SORTED = "true attraction, sorted"
# Algorithm 1 of the paper shows the list that is best for the indices and an order of v that it is given; the paper's experiments, like
# the rows above, put the largest index first. Past the paper, dcm-full learns that order.
KNOWN, LEARNED = "dcm-kl-ucb, order of v known", "dcm-full"
ORDER = "past the paper's experiments: Algorithm 1 with the order of v"
MOST_OF_KNOWN = 1.2  # regret of the learned order, as a multiple of that of the known order, where v(10) = 0
# v(10) as estimated is the prior mean, since nothing after the last position leaves a trace; the paper's figure 2c has 0 there.
VARIANTS: dict[str, float | None] = {"v as estimated": None, "v(10) = 0": 0.0}


def run(setup: Setup) -> Outcome:
    from rankpolicy.reports.simulation_figures import regret_figure

    queries = queries_by_frequency(setup, 2 if setup.is_smoke else NUM_QUERIES)
    rows: list[Row] = []
    claims: list[Claim] = []
    figures: dict[str, Any] = {}
    for variant, last in VARIANTS.items():
        problems = {
            f"{variant}, query {name}": problem_of(name, pages, last_termination=last)
            for name, pages in queries.items()
        }
        found: dict[str, Simulation] = {}
        for name, problem in problems.items():
            bandits = {bandit: BANDITS[bandit] for bandit in (OURS, *OTHERS, LEARNED)}
            in_order = partial(DcmKLUCB, positions=tuple(termination(problem)[: problem.cutoff].tolist()))
            makers = bandits | {KNOWN: in_order}
            found |= simulate_cells(makers, {name: problem}, setup, num_steps=NUM_STEPS, num_runs=NUM_RUNS)
        mean = mean_over_problems(list(found.values()))
        cell = f"{variant}, mean over {len(queries)} queries"
        rows += _rows(cell, mean, found, problems)
        claims += [
            _out_of_order(variant, problems),
            *(lower(cell, mean, OURS, other, paper=SMALLEST) for other in OTHERS),
            logarithmic(cell, mean, OURS, paper=GROWTH),
            lower(cell, mean, KNOWN, OURS, paper=ORDER),
            lower(cell, mean, LEARNED, OURS, paper=ORDER),
        ]
        if last is not None:
            # With v(10) as estimated the goal cannot be met: no click follows the last position, so v(10) leaves no trace.
            claims.append(
                less(
                    f"{cell}: {LEARNED} has less than {MOST_OF_KNOWN} times the regret of the known order",
                    mean.regrets[LEARNED][:, -1],
                    MOST_OF_KNOWN * mean.regrets[KNOWN][:, -1],
                    paper=ORDER,
                )
            )
        figures[f"regret_{len(figures)}"] = regret_figure(mean, title=f"DCM users of Yandex, {cell}, lists of {CUTOFF}")
    return Outcome(rows=tuple(rows), claims=tuple(claims), figures=figures)


def _out_of_order(variant: str, problems: Mapping[str, Problem]) -> Claim:
    count = sum(bool((np.diff(termination(problem)) > 0).any()) for problem in problems.values())
    return Claim(
        claim=f"{variant}: v is out of order for most queries",
        paper=OUT_OF_ORDER,
        ours=f"for {count} of {len(problems)}",
        low=count,
        high=count,
        above=len(problems) / 2,
    )


def _rows(cell: str, mean: Simulation, found: Mapping[str, Simulation], problems: Mapping[str, Problem]) -> list[Row]:
    """The mean over queries, with the number of queries on which each bandit is the best; the price of sorting; each query."""
    last = {name: {bandit: each.mean(bandit)[-1] for bandit in each.regrets} for name, each in found.items()}
    least = [min(regrets, key=lambda bandit: regrets[bandit]) for regrets in last.values()]
    steps = int(mean.steps[-1])
    sorting = {name: cost_of_sorting(problem) * steps for name, problem in problems.items()}
    return [
        *(regret_row(cell, bandit, mean) | {"least_of_queries": least.count(bandit)} for bandit in mean.regrets),
        _sorted_row(cell, steps, float(np.mean(list(sorting.values())))),
        *(regret_row(name, bandit, each) for name, each in found.items() for bandit in each.regrets),
        *(_sorted_row(name, steps, cost) for name, cost in sorting.items()),
    ]


def _sorted_row(cell: str, step: int, regret: float) -> Row:
    return {"cell": cell, "bandit": SORTED, "step": step, "regret": round(regret, 2), "standard_error": 0.0}
