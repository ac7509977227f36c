"""Figure 3c: users from a real log, one dependent click model per query."""

from __future__ import annotations

import numpy as np

from rankpolicy.clicks import ClickLog, fit_click_model, read_click_log
from rankpolicy.simulation import Problem, expected_reward, mean_over_problems, stationary
from reproductions.dcm.figure3a import GROWTH, OURS, SMALLEST
from reproductions.regret_cells import RUNS_OF_THE_PAPERS, logarithmic, lower, regret_row, simulate_cells
from reproductions.target import Claim, Outcome, Setup

# "models of the 20 most frequent queries of the Yandex dataset learned as DCM beforehand, and data made from them; K = 10, L is not
# given" (talk, experiment 3). Here: the 20 query-region pairs of the sample and of each the 20 items shown most often. Those shown once or
# twice, of up to 149, would fill the best list: their attraction is the prior's.
DATASET, FILE = "yandex_relpred_sample", "train.yandexlog.tsv.gz"
CUTOFF, NUM_QUERIES, MOST_ITEMS = 10, 20, 20
NUM_STEPS = 10_000  # of each query
OTHERS = ("first-click", "last-click", "ranked-kl-ucb")
SORTED = "true attraction, sorted"


def run(setup: Setup) -> Outcome:
    from rankpolicy.reports.regret_figure import regret_figure

    log = read_click_log(setup.folder(DATASET) / FILE)
    names = log.query_names[: 2 if setup.is_smoke else NUM_QUERIES]
    problems = {name: _problem(log, name) for name in names}
    queries = simulate_cells([OURS, *OTHERS], problems, setup, num_steps=NUM_STEPS, num_runs=RUNS_OF_THE_PAPERS)
    found = mean_over_problems(list(queries.values()))
    cell = f"mean over {len(names)} queries"
    out_of_order = sum(bool((np.diff(_termination(problem)) > 0).any()) for problem in problems.values())
    unavoidable = float(np.mean([_cost_of_sorting(problem) for problem in problems.values()])) * int(found.steps[-1])
    return Outcome(
        rows=(
            *(regret_row(cell, bandit, found) for bandit in found.regrets),
            {
                "cell": cell,
                "bandit": SORTED,
                "step": int(found.steps[-1]),
                "regret": round(unavoidable, 2),
                "standard_error": 0.0,
            },
            *(regret_row(name, bandit, queries[name]) for name in names for bandit in found.regrets),
        ),
        claims=(
            Claim(
                claim="v is out of order for most queries",
                paper="the assumption v(1) >= ... >= v(K) is not fulfilled",
                ours=f"for {out_of_order} of {len(names)}",
                holds=out_of_order > len(names) / 2,
            ),
            *(lower(cell, found, OURS, other, paper=SMALLEST) for other in OTHERS),
            logarithmic(cell, found, OURS, paper=GROWTH),
        ),
        figures={"regret": regret_figure(found, title=f"DCM users of Yandex, {cell}, lists of {CUTOFF}")},
    )


def _problem(log: ClickLog, query: str) -> Problem:
    sessions = log.of_query(query)
    # iterations=0 keeps the estimate of the click model's own paper, which takes the last click for a stop.
    model = fit_click_model("dcm", sessions, iterations=0)
    times_shown = np.bincount(sessions.items[sessions.items >= 0], minlength=len(log.item_names))
    items = np.argsort(-times_shown, kind="stable")[: min(MOST_ITEMS, np.count_nonzero(times_shown))]
    user = model.user_of(query, [log.item_names[item] for item in items])
    return stationary(user, CUTOFF, name=f"query {query}, {len(items)} items")


def _termination(problem: Problem) -> np.ndarray:
    return problem.phases[0].user.parameters["stop"][:CUTOFF]


def _cost_of_sorting(problem: Problem) -> float:
    """Regret per step of the most attractive items in order: no bandit that puts the best item first gets below it if v is out of order."""
    user = problem.phases[0].user
    by_attraction = np.argsort(-user.attraction, kind="stable")[:CUTOFF]
    return float(problem.best_rewards()[0] - expected_reward(user, by_attraction))
