"""One run of a bandit against a user in Python: the specification of kernels/bandits/loop.py, used where numba is missing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits.bandit import Bandit
from rankpolicy.clicks.models.definition import User
from rankpolicy.simulation.problems import Problem
from rankpolicy.simulation.users import reward_of

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
