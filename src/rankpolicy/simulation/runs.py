"""Bandits against simulated users: regret over steps, many runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits import BANDITS
from rankpolicy.bandits.base import Bandit
from rankpolicy.kernels import has_numba
from rankpolicy.simulation.problems import Problem
from rankpolicy.simulation.reference import run_step_by_step
from rankpolicy.simulation.users import KINDS, draw_clicks
from rankpolicy.types import RankPolicyError

MakeBandit = Callable[..., Bandit]  # called with num_items, cutoff and random_state
ReportRun = Callable[[str, int, float], None]  # name of a bandit, runs done, mean regret so far at the last step
LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """Regret of each bandit: f(best list) - f(shown list) in expectation of the user, summed over steps; mean over problems."""

    problems: tuple[Problem, ...]
    steps: NDArray[np.int64]  # (step,) where regret was taken
    regrets: dict[str, NDArray[np.float64]]  # by bandit, (run, step)

    def mean(self, bandit: str) -> NDArray[np.float64]:
        return self.regrets[bandit].mean(0)

    def standard_error(self, bandit: str) -> NDArray[np.float64]:
        """Of the mean over runs; 0 where there is one run."""
        runs = self.regrets[bandit]
        return runs.std(0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else np.zeros(len(self.steps))

    def to_json(self) -> dict[str, Any]:
        policies = {
            name: {
                "steps": self.steps.tolist(),
                "regret": self.mean(name).tolist(),
                "standard_error": self.standard_error(name).tolist(),
            }
            for name in self.regrets
        }
        described = [problem.to_json() for problem in self.problems]
        problem = described[0] if len(described) == 1 else {"mean_over": described}
        runs = len(next(iter(self.regrets.values())))
        return {"problem": problem | {"steps": int(self.steps[-1]), "runs": runs}, "policies": policies}


def mean_over_problems(simulations: Sequence[Simulation]) -> Simulation:
    """One simulation of the mean regret: the same bandits, steps and runs on several problems, such as the queries of a log."""
    first = simulations[0]
    return Simulation(
        problems=tuple(problem for simulation in simulations for problem in simulation.problems),
        steps=first.steps,
        regrets={name: np.mean([each.regrets[name] for each in simulations], 0) for name in first.regrets},
    )


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
    """Every bandit against ``num_runs`` simulated users, one core a run.

    ``bandits`` are names, or what makes one: ``{"mine": partial(DcmKLUCB, log_log_weight=1.0)}``. Run r draws its numbers from streams of
    the seed and r alone, so threads do not change results, and all bandits meet the same users. With ``free_observations`` every item is
    shown once, alone, before the first step, as the papers have it; these lists are counted neither in steps nor in regret. Regret is taken
    at ``steps``, by default about fifty that rise by a factor.
    """
    if num_steps < 1 or num_runs < 1:
        raise RankPolicyError(f"a simulation must have 1 step and 1 run or more; got {num_steps} and {num_runs}.")
    makers = bandits if isinstance(bandits, Mapping) else {name: BANDITS.named(name) for name in bandits}
    if not makers:
        raise RankPolicyError("a simulation needs at least one bandit; got none.")
    wanted = log_spaced_steps(num_steps) if steps is None else np.unique(np.asarray(steps, np.int64))
    if wanted[0] < 1 or wanted[-1] > num_steps:
        raise RankPolicyError(f"steps must be from 1 to {num_steps}; got {wanted[0]} to {wanted[-1]}.")
    seeds = np.random.SeedSequence(random_state).generate_state(num_runs) % LARGEST_SEED
    one_run = (
        _compiled_run(problem, wanted, free_observations)
        if has_numba()
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


def log_spaced_steps(num_steps: int, *, num_points: int = 50) -> NDArray[np.int64]:
    """Whole numbers from 1 to ``num_steps`` that rise by about the same factor.

    >>> log_spaced_steps(100, num_points=5)
    array([  1,   3,  10,  32, 100])
    """
    return np.unique(np.geomspace(1, num_steps, num_points).round().astype(np.int64))


def _compiled_run(problem: Problem, steps: NDArray[np.int64], free_observations: bool) -> Callable[..., Any]:
    from rankpolicy.kernels.bandits.loop import ProblemArrays, simulate_run
    from rankpolicy.kernels.plackett_luce.random_stream import stream

    users = [phase.user for phase in problem.phases]
    available = np.zeros((len(users), problem.num_items), bool)
    for row, phase in zip(available, problem.phases, strict=True):
        row[phase.available] = True
    attraction, satisfaction = np.stack([u.attraction for u in users]), np.stack([u.satisfaction for u in users])
    parameters = np.array(users[0].parameters, np.float64, order="C")
    starts, best = np.array([phase.start for phase in problem.phases], np.int64), problem.best_rewards()

    arrays = ProblemArrays(
        kind=KINDS.index(users[0].kind),
        attraction=attraction,
        satisfaction=satisfaction,
        parameters=parameters,
        available=available,
        starts=starts,
        best=best,
        cutoff=int(problem.cutoff),
    )

    def run(bandit: Bandit, seed: int, number: int) -> NDArray[np.float64]:
        regret, state = np.empty(len(steps)), np.uint64(stream(seed, number))
        simulate_run(
            *bandit.program(), bandit.memory, bandit.generator, arrays, free_observations, state, steps, regret
        )
        return regret

    return run


def _plain_run(
    problem: Problem, steps: NDArray[np.int64], free_observations: bool, bandit: Bandit, seed: int, number: int
) -> NDArray[np.float64]:
    generator = np.random.default_rng([seed, number])
    draw = partial(_draw, generator)
    return run_step_by_step(bandit, problem, steps=steps, draw=draw, free_observations=free_observations)


def _draw(generator: np.random.Generator, user: Any, ranking: NDArray[np.int64]) -> NDArray[np.int8]:
    return draw_clicks(user, ranking, generator)
