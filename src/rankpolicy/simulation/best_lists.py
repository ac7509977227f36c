"""The best list of a user: what regret is measured against."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.models.base import User
from rankpolicy.simulation.users import expected_reward

MOST_ENUMERATED = 50_000


def best_list(user: User, available: NDArray[np.int64], cutoff: int) -> NDArray[np.int64]:
    """The list of at most ``cutoff`` available items that has the highest expected reward.

    - dcm, pbm: the most attractive items, the best of them where v or examination is highest (both rewards gain by sorting alike).
    - cascade, ccm, dbn: a click chain, where an item earns x and is passed with probability c; of two neighbours the one with the larger
      x / (1 - c) goes first, and a dynamic program over the items in that order chooses which to show.
    - ubm: enumeration where there are few lists, otherwise the best that exchanges of single items find.

    >>> from rankpolicy.simulation.users import dcm_user
    >>> best_list(dcm_user([0.1, 0.9, 0.5], termination=[0.2, 0.7]), np.arange(3), 2)
    array([2, 1])
    """
    length = min(cutoff, len(available))
    if user.kind in ("dcm", "pbm"):
        by_attraction = available[np.argsort(-user.attraction[available], kind="stable")][:length]
        result = np.empty(length, np.int64)
        result[np.argsort(-user.parameters[0, :length], kind="stable")] = by_attraction
        return result
    return _best_exchange(user, available, length) if user.kind == "ubm" else _best_chain(user, available, length)


def _best_chain(user: User, available: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    a = user.attraction[available]
    if user.kind == "dbn":
        earned = a * user.satisfaction[available]
        passed = user.parameters[0, 0] * (1 - earned)
    elif user.kind == "ccm":
        tau_1, tau_2, tau_3 = user.parameters[0]
        earned, passed = a, (1 - a) * tau_1 + a * (tau_2 * (1 - a) + tau_3 * a)
    else:
        earned, passed = a, 1 - a
    # x / (1 - c) with c = 1 is earned for nothing: such items go first.
    priority = np.divide(earned, 1 - passed, out=np.full(len(a), np.inf), where=passed < 1)
    order = np.argsort(-priority, kind="stable")
    value = np.zeros((len(a) + 1, length + 1))  # of the best choice of so many from order[i:]
    for i in range(len(a) - 1, -1, -1):
        value[i, 1:] = np.maximum(value[i + 1, 1:], earned[order[i]] + passed[order[i]] * value[i + 1, :-1])
    chosen, left = [], length
    for i in range(len(a)):
        shown = earned[order[i]] + passed[order[i]] * value[i + 1, left - 1] if left else -1.0
        # Items that earn nothing still fill the list.
        if left and (shown >= value[i + 1, left] or len(a) - i == left):
            chosen.append(available[order[i]])
            left -= 1
    return np.array(chosen, np.int64)


def _best_exchange(user: User, available: NDArray[np.int64], length: int) -> NDArray[np.int64]:
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
