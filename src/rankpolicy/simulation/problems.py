"""Simulation problems: a user over time, which items can be shown and how many at once; and the best list, to measure regret by."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.clicks.models.definition import PAIR, User
from rankpolicy.declarations.arguments import as_float64, as_whole_numbers, checked_kinds, seeded, whole_number
from rankpolicy.display import frozen_value
from rankpolicy.simulation.users import cascade_user, dcm_user, reward_of
from rankpolicy.types import RankPolicyError

MOST_ENUMERATED = 50_000  # lists, in the search for the best one


@frozen_value(kw_only=True)
class Phase:
    """A period of a simulation, which lasts until the next one starts.

    Parameters
    ----------
    start
        Its first step, counted from 1.
    user
        The user of these steps.
    available
        Numbers of the items that can be shown (item,).
    """

    start: int
    user: User
    available: NDArray[np.int64]


@frozen_value(kw_only=True)
class Problem:
    """What bandits are simulated against: a user who may change, and items that may come and go.

    Parameters
    ----------
    phases
        Periods one after another, the first from step 1. Their users share the kind and all parameters but those of items.
    cutoff
        Number of items that a list shows.
    name
        Title of figures and tables.
    """

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
            same = user.kind == users[0].kind and user.num_items == users[0].num_items
            if not same or any(not np.array_equal(a, b) for a, b in zip(_shared(user), _shared(users[0]), strict=True)):
                raise RankPolicyError(
                    "phases must share kind, parameters and number of items; only attraction and satisfaction may change."
                )
        positions, length = users[0].num_positions, max(len(phase.available) for phase in self.phases)
        if positions is not None and min(self.cutoff, length) > positions:
            raise RankPolicyError(
                f"a {users[0].kind} user must have parameters for all {min(self.cutoff, length)} positions shown; got {positions}."
            )

    @property
    def num_items(self) -> int:
        """Number of items, available or not."""
        return self.phases[0].user.num_items

    def best_rewards(self) -> NDArray[np.float64]:
        """Expected reward of the best list of each phase (phase,)."""
        rewards = np.empty(len(self.phases))
        for index, phase in enumerate(self.phases):
            rewards[index] = reward_of(phase.user, _best_list(phase.user, phase.available, self.cutoff))
        return rewards

    def to_dict(self) -> dict[str, Any]:
        """The problem as plain numbers and texts."""
        first = self.phases[0].user
        return {
            "name": self.name,
            "users": first.kind,
            "items": self.num_items,
            "cutoff": self.cutoff,
            "attraction": first.attraction.tolist(),
            "parameters": {name: values.tolist() for name, values in first.parameters.items() if name != "attraction"},
            "phases": [{"start": phase.start, "available": len(phase.available)} for phase in self.phases],
        }


@checked_kinds
def stationary(user: User, cutoff: int, *, name: str = "") -> Problem:
    """The same user and all items at every step.

    Parameters
    ----------
    user
        The user.
    cutoff
        Number of items that a list shows.
    name
        Title of figures and tables; by default kind, items and cutoff.
    """
    phase = Phase(start=1, user=user, available=np.arange(user.num_items))
    return Problem(phases=(phase,), cutoff=cutoff, name=name or f"{user.kind}, {user.num_items} items, cutoff {cutoff}")


@checked_kinds
def abrupt_drift(problem: Problem, attraction: ArrayLike, *, at: int) -> Problem:
    """The attraction of all items changes at one step.

    Parameters
    ----------
    problem
        The problem before the change.
    attraction
        The attraction of every item from then on (item,).
    at
        The first step with the new attraction.
    """
    last = problem.phases[-1]
    changed = last.user.with_attraction(attraction)
    return replace(problem, phases=(*problem.phases, replace(last, start=at, user=changed)))


@checked_kinds
def gradual_drift(problem: Problem, attraction: ArrayLike, *, start: int, end: int, num_changes: int = 100) -> Problem:
    """The attraction of all items changes little by little between two steps.

    Parameters
    ----------
    problem
        The problem before the change.
    attraction
        The attraction of every item at the end (item,).
    start, end
        The steps between which it changes.
    num_changes
        Number of equal changes.
    """
    before, after = problem.phases[-1].user.attraction, as_float64("attraction", attraction)
    whole_number("num_changes", num_changes, at_least=1, at_most=1_000_000)
    if before.shape != after.shape:
        raise RankPolicyError(f"attraction must be one number per item, shape {before.shape}; got {after.shape}.")
    for change in range(1, num_changes + 1):
        share = change / num_changes
        at = start + round((change - 1) * (end - start) / num_changes)
        problem = abrupt_drift(problem, (1 - share) * before + share * after, at=at)
    return problem


@checked_kinds
def change_items(problem: Problem, available: ArrayLike, *, at: int) -> Problem:
    """From one step on other items can be shown.

    Parameters
    ----------
    problem
        The problem before the change.
    available
        The items that can be shown from then on.
    at
        The first step with these items.
    """
    return replace(
        problem,
        phases=(
            *problem.phases,
            replace(problem.phases[-1], start=at, available=np.unique(as_whole_numbers("available", available))),
        ),
    )


@checked_kinds
def dcm_lower_bound_problem(
    num_items: int, cutoff: int, *, best: float = 0.2, gap: float, termination: float
) -> Problem:
    """B_LB(L, A* = [K], p, Delta, gamma) of Katariya et al. 2016: the first K items have attraction p, the others p - Delta.

    Parameters
    ----------
    num_items
        L, number of items.
    cutoff
        K, number of items that a list shows.
    best
        p.
    gap
        Delta.
    termination
        gamma, P(satisfied after a click) at every position.
    """
    user = dcm_user(_two_levels(num_items, cutoff, best, gap), np.full(cutoff, termination))
    return stationary(user, cutoff, name=f"B_LB(L={num_items}, K={cutoff}, p={best:g}, Δ={gap:g}, γ={termination:g})")


@checked_kinds
def cascade_lower_bound_problem(num_items: int, cutoff: int, *, best: float = 0.2, gap: float) -> Problem:
    """The problem of Kveton et al. 2015: users stop at the first click; the first K items have attraction p, the others p - Delta.

    Parameters
    ----------
    num_items
        L, number of items.
    cutoff
        K, number of items that a list shows.
    best
        p.
    gap
        Delta.
    """
    user = cascade_user(_two_levels(num_items, cutoff, best, gap))
    return stationary(user, cutoff, name=f"cascade(L={num_items}, K={cutoff}, p={best:g}, Δ={gap:g})")


@checked_kinds
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
    """DCM users whose attraction is linear in features of the items; returns the problem and the features (item, feature).

    Features are a 1 and a random direction x of length 1; attraction = mean + spread x'u, where u is a random direction as well.

    Parameters
    ----------
    num_items
        Number of items.
    num_features
        Number of features, at least 2.
    cutoff
        Number of items that a list shows.
    mean, spread
        Attraction lies between mean - spread and mean + spread.
    termination
        P(satisfied after a click) at every position.
    random_state
        Seed; the same seed gives the same problem.
    """
    whole_number("num_items", num_items, at_least=1)
    whole_number("cutoff", cutoff, at_least=1)
    if num_features < 2 or not 0 <= mean - spread <= mean + spread <= 1:
        raise RankPolicyError(
            f"a linear problem must have 2 features or more and mean ± spread between 0 and 1; got {num_features}, {mean:g} ± {spread:g}."
        )
    directions = seeded(random_state).standard_normal((num_items + 1, num_features - 1))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    features, parameter = directions[:-1], directions[-1]
    user = dcm_user(mean + spread * features @ parameter, np.full(cutoff, termination))
    name = f"linear DCM, {num_items} items, {num_features} features, cutoff {cutoff}"
    return stationary(user, cutoff, name=name), np.column_stack([np.ones(num_items), features])


def _shared(user: User) -> list[NDArray[np.float64]]:
    """The parameters that are not those of items."""
    return [user.parameters[name] for name, axes in user.model.axes.items() if axes != (PAIR,)]


def _two_levels(num_items: int, cutoff: int, best: float, gap: float) -> NDArray[np.float64]:
    whole_number("cutoff", cutoff, at_least=1)
    if num_items < cutoff:
        raise RankPolicyError(f"a problem must have at least as many items as positions, {cutoff}; got {num_items}.")
    return np.where(np.arange(num_items) < cutoff, best, best - gap)


@checked_kinds
def best_list(user: User, available: NDArray[np.int64], cutoff: int) -> NDArray[np.int64]:
    """The list of at most ``cutoff`` available items that has the highest expected reward.

    - dcm, pbm: the most attractive items, the best of them where v or examination is highest (both rewards gain by sorting alike).
    - ccm, dbn: an item earns x and is passed with probability c, wherever it stands; of two neighbours the one with the larger
      x / (1 - c) goes first, and a dynamic program over the items in that order chooses which ones to show.
    - ubm and any other walk: enumeration where there are few lists, otherwise the best that exchanges of single items find.

    Which of these applies is read from how the user walks, not from the name of the click model.

    Parameters
    ----------
    user
        The user who is shown the list.
    available
        Items that can be shown.
    cutoff
        Length of the list.

    >>> from rankpolicy.simulation.users import dcm_user
    >>> best_list(dcm_user([0.1, 0.9, 0.5], termination=[0.2, 0.7]), np.arange(3), 2)
    array([2, 1])
    """
    whole_number("cutoff", cutoff, at_least=1)
    available = user.checked_items("available", available)
    if len(available) == 0:
        raise RankPolicyError("available must hold at least one item; got none.")
    return _best_list(user, available, cutoff)


def _best_list(user: User, available: NDArray[np.int64], cutoff: int) -> NDArray[np.int64]:
    length = min(cutoff, len(available))
    # Every available item at every position.
    table = np.broadcast_to(available[:, None], (len(available), length))
    walk, rewards = user.walk(table), user.click_rewards(table)
    if walk.examination.shape[1] > 1:
        return _best_by_exchanges(user, available, length)
    examination = walk.examination[:, 0]
    never_stops = walk.after_skip == 1 and (walk.after_click == 1).all()
    stops_when_satisfied = walk.after_skip == 1 and np.array_equal(walk.after_click, 1 - rewards)
    if _same_for_all_items(rewards) and (never_stops or (stops_when_satisfied and (examination == 1).all())):
        result = np.empty(length, np.int64)
        best_first = available[np.argsort(-walk.attraction[:, 0], kind="stable")][:length]
        result[np.argsort(-examination * rewards[0], kind="stable")] = best_first
        return result
    if (examination == 1).all() and _same_for_all_items(rewards.T) and _same_for_all_items(walk.after_click.T):
        a = walk.attraction[:, 0]
        passed = a * walk.after_click[:, 0] + (1 - a) * walk.after_skip
        return _best_chain(available, a * rewards[:, 0], passed, length)
    return _best_by_exchanges(user, available, length)


def _same_for_all_items(values: NDArray[np.float64]) -> bool:
    """Whether all rows are equal."""
    return bool((values == values[:1]).all())


def _best_chain(
    available: NDArray[np.int64], earned: NDArray[np.float64], passed: NDArray[np.float64], length: int
) -> NDArray[np.int64]:
    # Items with c = 1 cost nothing to show: they go first.
    priority = np.divide(earned, 1 - passed, out=np.full(len(earned), np.inf), where=passed < 1)
    order = np.argsort(-priority, kind="stable")
    value = np.zeros((len(earned) + 1, length + 1))  # of the best choice of so many items from order[i:]
    for i in range(len(earned) - 1, -1, -1):
        value[i, 1:] = np.maximum(value[i + 1, 1:], earned[order[i]] + passed[order[i]] * value[i + 1, :-1])
    chosen, num_missing = [], length
    for i in range(len(earned)):
        shown = earned[order[i]] + passed[order[i]] * value[i + 1, num_missing - 1] if num_missing else -1.0
        # Items that earn nothing still fill the list.
        if num_missing and (shown >= value[i + 1, num_missing] or len(earned) - i == num_missing):
            chosen.append(available[order[i]])
            num_missing -= 1
    return np.array(chosen, np.int64)


def _best_by_exchanges(user: User, available: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    if math.perm(len(available), length) <= MOST_ENUMERATED:
        lists = itertools.permutations(available.tolist(), length)
        return np.array(max(lists, key=lambda ranking: reward_of(user, ranking)), np.int64)
    order = available[np.argsort(-user.attraction[available], kind="stable")]
    best = reward_of(user, order[:length])
    improved = True
    while improved:
        improved = False
        for i, j in itertools.combinations(range(len(order)), 2):
            if i >= length:
                break
            order[[i, j]] = order[[j, i]]
            reward = reward_of(user, order[:length])
            if reward > best + 1e-12:
                best, improved = reward, True
            else:
                order[[i, j]] = order[[j, i]]
    return order[:length]
