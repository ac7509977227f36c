"""What is simulated: a user over time, which items there are, and how many are shown."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.clicks.models.base import User
from rankpolicy.simulation.best_lists import best_list
from rankpolicy.simulation.users import cascade_user, dcm_user, expected_reward, longest_list, make_user
from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Phase:
    """From step ``start`` (counted from 1) on, this user comes and these items can be shown."""

    start: int
    user: User
    available: NDArray[np.int64]  # (item,) item numbers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """A user who may change, and items that may come and go. Kind and parameters of the user stay: attraction and satisfaction drift."""

    phases: tuple[Phase, ...]
    cutoff: int
    name: str = ""

    def __post_init__(self) -> None:
        users = [phase.user for phase in self.phases]
        if not users or self.phases[0].start != 1:
            raise RankPolicyError("a problem must have a phase that starts at step 1.")
        if self.cutoff < 1:
            raise RankPolicyError(f"cutoff must be 1 or more; got {self.cutoff}.")
        starts = [phase.start for phase in self.phases]
        if any(later <= earlier for earlier, later in itertools.pairwise(starts)):
            raise RankPolicyError(f"phases must start one after another; got starts {starts}.")
        for user in users[1:]:
            same = user.kind == users[0].kind and np.array_equal(user.parameters, users[0].parameters)
            if not same or len(user.attraction) != len(users[0].attraction):
                raise RankPolicyError(
                    "phases must share kind, parameters and number of items; only attraction and satisfaction may change."
                )
        positions, length = longest_list(users[0]), max(len(phase.available) for phase in self.phases)
        if positions is not None and min(self.cutoff, length) > positions:
            raise RankPolicyError(
                f"a {users[0].kind} user must have parameters for all {min(self.cutoff, length)} positions shown; got {positions}."
            )

    @property
    def num_items(self) -> int:
        return len(self.phases[0].user.attraction)

    def best_rewards(self) -> NDArray[np.float64]:
        """Expected reward of the best list of each phase (phase,)."""
        lists = [best_list(phase.user, phase.available, self.cutoff) for phase in self.phases]
        return np.array(
            [expected_reward(phase.user, ranking) for phase, ranking in zip(self.phases, lists, strict=True)]
        )

    def to_json(self) -> dict[str, Any]:
        first = self.phases[0].user
        return {
            "name": self.name,
            "users": first.kind,
            "items": self.num_items,
            "cutoff": self.cutoff,
            "attraction": first.attraction.tolist(),
            "satisfaction": first.satisfaction.tolist(),
            "parameters": first.parameters.tolist(),
            "phases": [{"start": phase.start, "available": len(phase.available)} for phase in self.phases],
        }


def stationary(user: User, cutoff: int, *, name: str = "") -> Problem:
    """The same user and all items at every step."""
    phase = Phase(start=1, user=user, available=np.arange(len(user.attraction)))
    return Problem(
        phases=(phase,), cutoff=cutoff, name=name or f"{user.kind}, {len(user.attraction)} items, cutoff {cutoff}"
    )


def abrupt_drift(problem: Problem, attraction: ArrayLike, *, at: int) -> Problem:
    """The user's attraction becomes another at step ``at``."""
    last = problem.phases[-1]
    user = last.user
    changed = make_user(user.kind, attraction, satisfaction=user.satisfaction, parameters=user.parameters)
    return replace(problem, phases=(*problem.phases, replace(last, start=at, user=changed)))


def gradual_drift(problem: Problem, attraction: ArrayLike, *, start: int, end: int, num_changes: int = 100) -> Problem:
    """The user's attraction moves to another between two steps, in ``num_changes`` equal parts."""
    before, after = problem.phases[-1].user.attraction, np.asarray(attraction, np.float64)
    for part in range(1, num_changes + 1):
        share = part / num_changes
        at = start + round((part - 1) * (end - start) / num_changes)
        problem = abrupt_drift(problem, (1 - share) * before + share * after, at=at)
    return problem


def change_items(problem: Problem, available: ArrayLike, *, at: int) -> Problem:
    """From step ``at`` on these items can be shown: others have gone, new ones have come."""
    return replace(
        problem,
        phases=(
            *problem.phases,
            replace(problem.phases[-1], start=at, available=np.unique(np.asarray(available, np.int64))),
        ),
    )


def dcm_lower_bound_problem(
    num_items: int, cutoff: int, *, best: float = 0.2, gap: float, termination: float
) -> Problem:
    """B_LB(L, A* = [K], p, Delta, gamma) of Katariya et al. 2016: the first ``cutoff`` items attract with p = ``best``, the others with
    p - Delta, Delta = ``gap``; every position ends the search after a click with gamma = ``termination``.
    """
    user = dcm_user(_two_levels(num_items, cutoff, best, gap), np.full(cutoff, termination))
    return stationary(user, cutoff, name=f"B_LB(L={num_items}, K={cutoff}, p={best:g}, Δ={gap:g}, γ={termination:g})")


def cascade_lower_bound_problem(num_items: int, cutoff: int, *, best: float = 0.2, gap: float) -> Problem:
    """The same for users who stop at the first click (Kveton et al. 2015)."""
    user = cascade_user(_two_levels(num_items, cutoff, best, gap))
    return stationary(user, cutoff, name=f"cascade(L={num_items}, K={cutoff}, p={best:g}, Δ={gap:g})")


def linear_dcm_problem(
    num_items: int,
    num_features: int,
    cutoff: int,
    *,
    mean: float = 0.2,
    spread: float = 0.15,
    termination: float = 0.5,
    random_state: int,
) -> tuple[Problem, NDArray[np.float64]]:
    """DCM users whose attraction is linear in features (item, feature), which are returned beside the problem for contextual bandits.

    Features are a 1 and a random direction x of length 1; attraction = ``mean`` + ``spread`` x'u, u a direction as well.
    """
    if num_features < 2 or not 0 <= mean - spread <= mean + spread <= 1:
        raise RankPolicyError(
            f"a linear problem must have 2 features or more and mean ± spread between 0 and 1; got {num_features}, {mean:g} ± {spread:g}."
        )
    directions = np.random.default_rng(random_state).standard_normal((num_items + 1, num_features - 1))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    features, parameter = directions[:-1], directions[-1]
    user = dcm_user(mean + spread * features @ parameter, np.full(cutoff, termination))
    name = f"linear DCM, {num_items} items, {num_features} features, cutoff {cutoff}"
    return stationary(user, cutoff, name=name), np.column_stack([np.ones(num_items), features])


def _two_levels(num_items: int, cutoff: int, best: float, gap: float) -> NDArray[np.float64]:
    if num_items < cutoff:
        raise RankPolicyError(f"a problem must have at least as many items as positions, {cutoff}; got {num_items}.")
    return np.where(np.arange(num_items) < cutoff, best, best - gap)
