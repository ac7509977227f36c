"""The best list of a user, which regret is measured against."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.models.user import User
from rankpolicy.simulation.users import expected_reward

MOST_ENUMERATED = 50_000


def best_list(user: User, available: NDArray[np.int64], cutoff: int) -> NDArray[np.int64]:
    """The list of at most ``cutoff`` available items that has the highest expected reward.

    - dcm, pbm: the most attractive items, the best of them where v or examination is highest (same order maximises both rewards).
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
    chosen, left = [], length
    for i in range(len(earned)):
        shown = earned[order[i]] + passed[order[i]] * value[i + 1, left - 1] if left else -1.0
        # Items that earn nothing still fill the list.
        if left and (shown >= value[i + 1, left] or len(earned) - i == left):
            chosen.append(available[order[i]])
            left -= 1
    return np.array(chosen, np.int64)


def _best_by_exchanges(user: User, available: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    if math.perm(len(available), length) <= MOST_ENUMERATED:
        lists = itertools.permutations(available.tolist(), length)
        return np.array(max(lists, key=lambda ranking: expected_reward(user, ranking)), np.int64)
    order = available[np.argsort(-user.attraction[available], kind="stable")]
    best = expected_reward(user, order[:length])
    improved = True
    while improved:
        improved = False
        for i, j in itertools.combinations(range(len(order)), 2):
            if i >= length:
                break
            order[[i, j]] = order[[j, i]]
            reward = expected_reward(user, order[:length])
            if reward > best + 1e-12:
                best, improved = reward, True
            else:
                order[[i, j]] = order[[j, i]]
    return order[:length]
