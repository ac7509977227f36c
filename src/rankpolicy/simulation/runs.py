"""Bandits against simulated users: regret over steps, mean and standard error over runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.arguments import as_whole_numbers, checked_kinds, whole_number
from rankpolicy.bandits import BANDITS
from rankpolicy.bandits.base import Bandit
from rankpolicy.clicks.models.definition import User
from rankpolicy.display import short_repr
from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.simulation.problems import Problem
from rankpolicy.simulation.reference import run_step_by_step
from rankpolicy.simulation.users import draw_clicks
from rankpolicy.types import RankPolicyError, unknown_name

MakeBandit = Callable[..., Bandit]  # called with num_items, cutoff and random_state
ReportRun = Callable[[str, int, float], None]  # name of a bandit, runs done, mean regret so far at the last step
LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """Regret of bandits: expected reward of the best list minus that of the shown list, summed over steps.

    Parameters
    ----------
    problems
        What was simulated; with several problems regret is the mean over them.
    steps
        Steps after which regret was taken (step,).
    regrets
        Regret (run, step) by name of the bandit.
    """

    problems: tuple[Problem, ...]
    steps: NDArray[np.int64]
    regrets: dict[str, NDArray[np.float64]]

    __repr__ = short_repr

    @checked_kinds
    def mean(self, bandit: str) -> NDArray[np.float64]:
        """Mean regret over runs (step,).

        Parameters
        ----------
        bandit
            Name of the bandit.
        """
        mean: NDArray[np.float64] = self._of(bandit).mean(0)
        return mean

    @checked_kinds
    def standard_error(self, bandit: str) -> NDArray[np.float64]:
        """Standard error of the mean over runs (step,); 0 for a single run.

        Parameters
        ----------
        bandit
            Name of the bandit.
        """
        runs = self._of(bandit)
        if len(runs) == 1:
            return np.zeros(len(self.steps))
        error: NDArray[np.float64] = runs.std(0, ddof=1) / np.sqrt(len(runs))
        return error

    def _of(self, bandit: str) -> NDArray[np.float64]:
        if bandit not in self.regrets:
            raise RankPolicyError(unknown_name("bandit of this simulation:", bandit, self.regrets))
        return self.regrets[bandit]

    def to_dict(self) -> dict[str, Any]:
        """Problem and regrets as plain numbers and texts."""
        policies = {
            name: {
                "steps": self.steps.tolist(),
                "regret": self.mean(name).tolist(),
                "standard_error": self.standard_error(name).tolist(),
            }
            for name in self.regrets
        }
        described = [problem.to_dict() for problem in self.problems]
        problem = described[0] if len(described) == 1 else {"mean_over": described}
        runs = len(next(iter(self.regrets.values())))
        return {"problem": problem | {"steps": int(self.steps[-1]), "runs": runs}, "policies": policies}


@checked_kinds
def mean_over_problems(simulations: Sequence[Simulation]) -> Simulation:
    """The mean regret over several problems, such as the queries of a log.

    Parameters
    ----------
    simulations
        Simulations of the same bandits with the same steps and number of runs.
    """
    if len(simulations) == 0:
        raise RankPolicyError("simulations must be a list of at least one Simulation; got none.")
    first = simulations[0]
    return Simulation(
        problems=tuple(problem for simulation in simulations for problem in simulation.problems),
        steps=first.steps,
        regrets={name: np.mean([each.regrets[name] for each in simulations], 0) for name in first.regrets},
    )


@checked_kinds
def simulate(
    bandits: Iterable[str] | Mapping[str, MakeBandit],
    problem: Problem,
    *,
    num_steps: int,
    num_runs: int,
    random_state: int = 0,
    steps: ArrayLike | None = None,
    free_observations: bool = True,
    num_threads: int | None = None,
    report_run: ReportRun | None = None,
) -> Simulation:
    """Simulate bandits step by step: show a list, draw the user's clicks, learn from them.

    Run r draws its numbers from streams of the seed and r alone, so threads do not change results and all bandits meet the same users.

    Parameters
    ----------
    bandits
        Names of bandits, or functions that make one from num_items, cutoff and random_state, by name:
        ``{"mine": partial(DcmKLUCB, log_log_weight=1.0)}``.
    problem
        The user, the items and the length of lists.
    num_steps
        Number of lists shown in a run.
    num_runs
        Number of runs.
    random_state
        Seed; the same seed gives the same numbers.
    steps
        Steps after which regret is taken; by default about fifty, evenly spaced on a logarithmic scale.
    free_observations
        Whether every item is shown once, alone, before the first step, as in the papers; these lists count neither as steps nor for regret.
    num_threads
        Number of runs at the same time; by default one per core.
    report_run
        Called after every run with the bandit, the runs done and their mean regret.
    """
    if num_steps < 1 or num_runs < 1:
        raise RankPolicyError(f"a simulation must have 1 step and 1 run or more; got {num_steps} and {num_runs}.")
    makers = bandits if isinstance(bandits, Mapping) else {name: BANDITS.named(name) for name in bandits}
    if not makers:
        raise RankPolicyError("a simulation needs at least one bandit; got none.")
    wanted = log_spaced_steps(num_steps) if steps is None else np.unique(as_whole_numbers("steps", steps))
    if wanted.size == 0:
        raise RankPolicyError("steps must hold at least one step; got none.")
    if wanted[0] < 1 or wanted[-1] > num_steps:
        raise RankPolicyError(f"steps must be from 1 to {num_steps}; got {wanted[0]} to {wanted[-1]}.")
    seeds = np.random.SeedSequence(random_state).generate_state(num_runs) % LARGEST_SEED
    one_run = (
        _compiled_run(problem, wanted, free_observations)
        if HAS_NUMBA
        else partial(_plain_run, problem, wanted, free_observations)
    )
    regrets = {name: np.empty((num_runs, len(wanted))) for name in makers}
    with ThreadPoolExecutor(num_threads or os.cpu_count()) as threads:
        for name, make in makers.items():
            made = [make(num_items=problem.num_items, cutoff=problem.cutoff, random_state=int(seed)) for seed in seeds]
            for run, regret in enumerate(threads.map(one_run, made, [random_state] * num_runs, range(num_runs))):
                regrets[name][run] = regret
                if report_run is not None:
                    report_run(name, run + 1, float(regrets[name][: run + 1, -1].mean()))
    return Simulation(problems=(problem,), steps=wanted, regrets=regrets)


@checked_kinds
def log_spaced_steps(num_steps: int, *, num_points: int = 50) -> NDArray[np.int64]:
    """Whole numbers from 1 to ``num_steps``, about evenly spaced on a logarithmic scale.

    Parameters
    ----------
    num_steps
        The last one.
    num_points
        Most numbers.

    >>> log_spaced_steps(100, num_points=5)
    array([  1,   3,  10,  32, 100])
    """
    whole_number("num_steps", num_steps, at_least=1)
    whole_number("num_points", num_points, at_least=1, at_most=1_000_000)
    return np.unique(np.geomspace(1, num_steps, num_points).round().astype(np.int64))


def _compiled_run(problem: Problem, steps: NDArray[np.int64], free_observations: bool) -> Callable[..., Any]:
    from rankpolicy.kernels.bandits.loop import ProblemArrays, simulate_run
    from rankpolicy.kernels.clicks.walk import random_source

    users = simulated_users(problem)
    available = np.zeros((len(problem.phases), problem.num_items), bool)
    for row, phase in zip(available, problem.phases, strict=True):
        row[phase.available] = True
    starts, best = np.array([phase.start for phase in problem.phases], np.int64), problem.best_rewards()

    arrays = ProblemArrays(users=users, available=available, starts=starts, best=best, cutoff=int(problem.cutoff))

    def run(bandit: Bandit, seed: int, number: int) -> NDArray[np.float64]:
        regret = np.empty(len(steps))
        simulate_run(
            *bandit.program(),
            bandit.memory,
            bandit.generator,
            arrays,
            free_observations,
            random_source(seed, number),
            steps,
            regret,
        )
        return regret

    return run


def simulated_users(problem: Problem) -> Any:
    """The users of all phases as the compiled loop reads them: every item at every position."""
    from rankpolicy.kernels.clicks.walk import SimulatedUsers

    length = min(problem.cutoff, max(len(phase.available) for phase in problem.phases))
    table = np.broadcast_to(np.arange(problem.num_items)[:, None], (problem.num_items, length))
    users = [phase.user for phase in problem.phases]
    walks = [user.walk(table) for user in users]
    return SimulatedUsers(
        np.stack([user.attraction for user in users]),
        walks[0].examination,
        np.stack([walk.after_click for walk in walks]),
        walks[0].after_skip,
        np.stack([user.click_rewards(table) for user in users]),
    )


def _plain_run(
    problem: Problem, steps: NDArray[np.int64], free_observations: bool, bandit: Bandit, seed: int, number: int
) -> NDArray[np.float64]:
    generator = np.random.default_rng([seed, number])

    def draw(user: User, ranking: NDArray[np.int64]) -> NDArray[np.int8]:
        return draw_clicks(user, ranking, generator)

    return run_step_by_step(bandit, problem, steps=steps, draw=draw, free_observations=free_observations)
