"""Bandits against simulated users: regret over steps, mean and standard error over runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.bandits import BANDITS
from rankpolicy.bandits.bandit import Bandit
from rankpolicy.clicks.models.definition import User
from rankpolicy.declarations.arguments import as_whole_numbers, checked_kinds, whole_number
from rankpolicy.display import frozen_value
from rankpolicy.executors import Executor, opened
from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.simulation.problems import Problem
from rankpolicy.simulation.users import draw_clicks, reward_of
from rankpolicy.types import RankPolicyError, unknown_name

MakeBandit = Callable[..., Bandit]  # called with num_items, cutoff and random_state
ReportRun = Callable[[str, int, float], None]  # name of a bandit, runs done, mean regret so far at the last step
LARGEST_SEED = 2**31 - 1


@frozen_value(kw_only=True)
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
        regrets={name: np.mean([simulation.regrets[name] for simulation in simulations], 0) for name in first.regrets},
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
    executor: Executor | str | None = None,
    report_run: ReportRun | None = None,
) -> Simulation:
    """Simulate bandits step by step: show a list, draw the user's clicks, learn from them.

    Run r draws its numbers from streams of the seed and r alone, so the executor does not change results and all bandits
    meet the same users.

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
    executor
        Where the runs take place: "serial", "threads", "processes", "ray", or an executor such as ``rp.executors.Processes(4)``. None:
        threads, one per core, which is best on one machine, because the loop is compiled. The results do not depend on it.
    report_run
        Called after every run with the bandit, the runs done and their mean regret.
    """
    if num_steps < 1 or num_runs < 1:
        raise RankPolicyError(f"a simulation must have 1 step and 1 run or more; got {num_steps} and {num_runs}.")
    makers = bandits if isinstance(bandits, Mapping) else {name: BANDITS.named(name) for name in bandits}
    if not makers:
        raise RankPolicyError("a simulation needs at least one bandit; got none.")
    report_steps = log_spaced_steps(num_steps) if steps is None else np.unique(as_whole_numbers("steps", steps))
    if report_steps.size == 0:
        raise RankPolicyError("steps must hold at least one step; got none.")
    if report_steps[0] < 1 or report_steps[-1] > num_steps:
        raise RankPolicyError(f"steps must be from 1 to {num_steps}; got {report_steps[0]} to {report_steps[-1]}.")
    seeds = np.random.SeedSequence(random_state).generate_state(num_runs) % LARGEST_SEED
    one_run = _Run(problem, report_steps, free_observations, random_state)
    regrets = {name: np.full((num_runs, len(report_steps)), np.nan) for name in makers}
    done = dict.fromkeys(makers, 0)
    tasks = [_Task(name, make, int(seed), run) for name, make in makers.items() for run, seed in enumerate(seeds)]

    def keep(number: int, regret: NDArray[np.float64]) -> None:
        name = tasks[number].name
        regrets[name][tasks[number].run] = regret
        done[name] += 1
        if report_run is not None:
            report_run(name, done[name], float(np.nanmean(regrets[name][:, -1])))

    with opened(executor, default="threads") as chosen:
        chosen.map(one_run, tasks, report=keep)
    return Simulation(problems=(problem,), steps=report_steps, regrets=regrets)


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


class _Task(NamedTuple):
    """One run of one bandit."""

    name: str
    make: MakeBandit
    seed: int
    run: int


class _Run:
    """One run of a bandit against the users of a problem, compiled where numba is installed."""

    def __init__(self, problem: Problem, steps: NDArray[np.int64], free_observations: bool, random_state: int) -> None:
        self.problem, self.steps = problem, steps
        self.free_observations, self.random_state = free_observations, random_state

    def __call__(self, task: _Task) -> NDArray[np.float64]:
        problem = self.problem
        bandit = task.make(num_items=problem.num_items, cutoff=problem.cutoff, random_state=task.seed)
        return self._compiled(bandit, task.run) if HAS_NUMBA else self._plain(bandit, task.run)

    @cached_property
    def _arrays(self) -> Any:
        from rankpolicy.kernels.bandits.loop import ProblemArrays
        from rankpolicy.kernels.clicks.walk import SimulatedUsers

        problem = self.problem
        available = np.zeros((len(problem.phases), problem.num_items), bool)
        for row, phase in zip(available, problem.phases, strict=True):
            row[phase.available] = True
        # Every item at every position.
        length = min(problem.cutoff, max(len(phase.available) for phase in problem.phases))
        table = np.broadcast_to(np.arange(problem.num_items)[:, None], (problem.num_items, length))
        users = [phase.user for phase in problem.phases]
        walks = [user.walk(table) for user in users]
        return ProblemArrays(
            users=SimulatedUsers(
                np.stack([user.attraction for user in users]),
                walks[0].examination,
                np.stack([walk.after_click for walk in walks]),
                walks[0].after_skip,
                np.stack([user.click_rewards(table) for user in users]),
            ),
            available=available,
            starts=np.array([phase.start for phase in problem.phases], np.int64),
            best=problem.best_rewards(),
            cutoff=int(problem.cutoff),
        )

    def _compiled(self, bandit: Bandit, run: int) -> NDArray[np.float64]:
        from rankpolicy.kernels.bandits.loop import simulate_run
        from rankpolicy.kernels.clicks.walk import random_source

        regret = np.empty(len(self.steps))
        simulate_run(
            *bandit.program(),
            bandit.memory,
            bandit.generator,
            self._arrays,
            self.free_observations,
            random_source(self.random_state, run),
            self.steps,
            regret,
        )
        return regret

    def _plain(self, bandit: Bandit, run: int) -> NDArray[np.float64]:
        generator = np.random.default_rng([self.random_state, run])

        def draw(user: User, ranking: NDArray[np.int64]) -> NDArray[np.int8]:
            return draw_clicks(user, ranking, generator)

        return run_step_by_step(
            bandit, self.problem, steps=self.steps, draw=draw, free_observations=self.free_observations
        )


DrawClicks = Callable[[User, NDArray[np.int64]], NDArray[np.int8]]


def run_step_by_step(
    bandit: Bandit, problem: Problem, *, steps: NDArray[np.int64], draw: DrawClicks, free_observations: bool
) -> NDArray[np.float64]:
    """Regret (step,) at the given steps; ``draw`` returns a user's clicks on a list."""
    first, best = problem.phases[0], problem.best_rewards()
    if free_observations:
        for item in first.available:
            ranking = np.array([item])
            bandit.program().learn(bandit.memory, ranking, draw(first.user, ranking), 1.0)
    regrets: list[float] = []
    total, phase = 0.0, -1
    for step in range(1, int(steps[-1]) + 1):
        if phase + 1 < len(problem.phases) and problem.phases[phase + 1].start <= step:
            phase += 1
        now = problem.phases[phase]
        ranking = bandit.rank(now.available)
        bandit.learn(ranking, draw(now.user, ranking))
        total += best[phase] - reward_of(now.user, ranking)
        if step == steps[len(regrets)]:
            regrets.append(total)
    return np.array(regrets)
