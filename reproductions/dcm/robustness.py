"""Beyond the paper's Figure 3c: every bandit against every kind of user, of which the DCM with v in order is only one."""

from __future__ import annotations

from rankpolicy.simulation import RobustnessMatrix, robustness_matrix
from rankpolicy.simulation.robustness import OUT_OF_ORDER, USERS
from reproductions.dcm.figure3a import OURS
from reproductions.paired import t_interval
from reproductions.regret_cells import less
from reproductions.statements import Claim
from reproductions.target import Outcome, Setup

GOOD = "whether or not the assumptions hold, it is confirmed to do well in experiments"
LEARNED = "dcm-full"
PAST_THE_PAPER = "past the paper: the order of v is learned"
MOST_MORE = 1.03  # regret of the learned order, as a multiple of that of dcmKL-UCB: its price where v descends


def run(setup: Setup) -> Outcome:
    from rankpolicy.reports.simulation_figures import robustness_figure

    def report_run(bandit: str, done: int, regret: float) -> None:
        if done == num_runs:
            setup.report(f"{bandit}: regret {regret:.1f}")

    num_runs = 2 if setup.is_smoke else 5
    matrix = robustness_matrix(
        [OURS, LEARNED, "first-click"] if setup.is_smoke else None,
        users=("cascade", OUT_OF_ORDER) if setup.is_smoke else USERS,
        num_steps=200 if setup.is_smoke else 5_000,
        num_runs=num_runs,
        num_draws=1 if setup.is_smoke else 4,
        random_state=setup.seed,
        report_run=report_run,
    )
    shares, errors = matrix.shares(), matrix.standard_errors()
    return Outcome(
        rows=tuple(
            {
                "bandit": bandit,
                "users": user,
                "share_of_random_regret": round(float(shares[i, j]), 4),
                "standard_error": round(float(errors[i, j]), 4),
            }
            for i, bandit in enumerate(matrix.bandits)
            for j, user in enumerate(matrix.users)
        ),
        claims=(
            *(_beats_random(matrix, user) for user in matrix.users),
            *(_learned_order(matrix, user) for user in matrix.users),
        ),
        figures={"matrix": robustness_figure(matrix, title=f"regret after {matrix.num_steps:,} steps")},
    )


def _beats_random(matrix: RobustnessMatrix, user: str) -> Claim:
    """That dcmKL-UCB has less regret than random lists: the interval of the differences run by run lies above zero."""
    column = matrix.users.index(user)
    return less(
        f"{user} users: {OURS} has less regret than random lists",
        matrix.regrets[matrix.bandits.index(OURS), column],
        matrix.random_regrets[column],
        paper=GOOD,
    )


def _learned_order(matrix: RobustnessMatrix, user: str) -> Claim:
    """That dcm-full has at most 3 % more regret than dcmKL-UCB."""
    column = matrix.users.index(user)
    ours, learned = (matrix.regrets[matrix.bandits.index(bandit), column] for bandit in (OURS, LEARNED))
    more = t_interval((learned - ours) / ours.mean())
    return Claim(
        claim=f"{user} users: {LEARNED} has at most {MOST_MORE - 1:.0%} more regret than {OURS}",
        paper=PAST_THE_PAPER,
        ours=f"{learned.mean():.1f} against {ours.mean():.1f}: {more.mean:+.0%} [{more.low:+.0%}, {more.high:+.0%}]",
        low=more.low,
        high=more.high,
        at_most=MOST_MORE - 1,
    )
