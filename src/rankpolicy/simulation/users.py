"""Simulated users: how each kind walks down a list, what a list is worth to it, and which list is best.

A ``User`` holds the attraction of every item (item,), not only of those shown; a shown list picks its own. With a = attraction, s =
satisfaction, and examined at the first position with certainty except for PBM and UBM:

    cascade  clicks with a, stops at the first click                              reward: P(a click) = 1 - prod (1 - a)
    dcm      clicks with a, stops after a click at position k with v_k            reward: P(satisfied) = 1 - prod (1 - v_k a)
    pbm      examines position k with e_k, clicks with a                          reward: clicks expected = sum e_k a
    ubm      examines k with e[k, position of the last click above], clicks with a  reward: clicks expected
    ccm      goes on with tau_1 after no click, tau_2 (1 - a) + tau_3 a after one  reward: clicks expected
    dbn      clicks with a, is then satisfied with s and stops; else goes on with gamma (sdbn: 1)  reward: P(satisfied)

The functions here are the readable specification of kernels/users.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.clicks.models.base import User
from rankpolicy.types import RankPolicyError, unknown_name

KINDS = ("cascade", "dcm", "pbm", "ubm", "ccm", "dbn")  # in the order of the codes of kernels/users.py


def cascade_user(attraction: ArrayLike) -> User:
    return make_user("cascade", attraction)


def dcm_user(attraction: ArrayLike, termination: ArrayLike) -> User:
    """``termination`` (position,), in any order: satisfied after a click there."""
    return make_user("dcm", attraction, parameters=np.atleast_2d(np.asarray(termination, float)))


def pbm_user(attraction: ArrayLike, examination: ArrayLike) -> User:
    return make_user("pbm", attraction, parameters=np.atleast_2d(np.asarray(examination, float)))


def ubm_user(attraction: ArrayLike, examination: ArrayLike) -> User:
    """``examination`` (position, position + 1): column r for the last click at 1-based position r, 0 for none."""
    return make_user("ubm", attraction, parameters=examination)


def ccm_user(attraction: ArrayLike, continuation: ArrayLike) -> User:
    """``continuation``: tau_1, tau_2, tau_3."""
    return make_user("ccm", attraction, parameters=np.atleast_2d(np.asarray(continuation, float)))


def dbn_user(attraction: ArrayLike, satisfaction: ArrayLike, continuation: float) -> User:
    return make_user("dbn", attraction, satisfaction=satisfaction, parameters=[[continuation]])


def sdbn_user(attraction: ArrayLike, satisfaction: ArrayLike) -> User:
    return dbn_user(attraction, satisfaction, 1.0)


def make_user(kind: str, attraction: ArrayLike, *, satisfaction: ArrayLike = (), parameters: ArrayLike = ()) -> User:
    """A checked user; what each kind needs is said in kernels/users.py.

    >>> make_user("dcm", [0.5, 1.2], parameters=[[0.9]])
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: attraction of a user must be probabilities; got numbers from 0.5 to 1.2.
    """
    if kind not in KINDS:
        raise RankPolicyError(unknown_name("kind of user", kind, KINDS))
    arrays = {"attraction": attraction, "satisfaction": satisfaction, "parameters": parameters}
    numbers = {name: np.array(values, np.float64, order="C") for name, values in arrays.items()}
    if kind == "cascade":
        numbers["parameters"] = np.empty((0, 0))
    for name, values in numbers.items():
        if values.size and not ((values >= 0) & (values <= 1)).all():
            raise RankPolicyError(
                f"{name} of a user must be probabilities; got numbers from {values.min():g} to {values.max():g}."
            )
    items, positions = numbers["attraction"].shape, numbers["parameters"].shape
    if len(items) != 1 or items[0] == 0:
        raise RankPolicyError(f"attraction must be (item,), a number for each item; got {items}.")
    if numbers["satisfaction"].shape != (items if kind == "dbn" else (0,)):
        raise RankPolicyError(
            f"satisfaction must be {items} for a dbn user and empty for others; got {numbers['satisfaction'].shape} for {kind}."
        )
    fits = {
        "cascade": True,
        "dcm": len(positions) == 2 and positions[0] == 1 and positions[1] > 0,
        "pbm": len(positions) == 2 and positions[0] == 1 and positions[1] > 0,
        "ubm": len(positions) == 2 and positions[1] == positions[0] + 1,
        "ccm": positions == (1, 3),
        "dbn": positions == (1, 1),
    }
    if not fits[kind]:
        needed = {"ubm": "(position, position + 1)", "ccm": "(1, 3)", "dbn": "(1, 1)"}.get(kind, "(1, position)")
        raise RankPolicyError(f"parameters of a {kind} user must be {needed}; got {positions}.")
    return User(kind=kind, **numbers)


def random_user(kind: str, num_items: int, cutoff: int, *, random_state: int) -> User:
    """A user drawn at random: attraction, satisfaction and v uniform, examination and continuation falling as they do in logs.

    PBM examines position k with 1/k, UBM with 1/(k - last click), CCM goes on with (0.9, 0.7, 0.3), DBN with 0.9.
    """
    generator = np.random.default_rng(random_state)
    attraction, satisfaction = generator.random(num_items), generator.random(num_items)
    positions = np.arange(1, cutoff + 1)
    builders: dict[str, Callable[[], User]] = {
        "cascade": lambda: cascade_user(attraction),
        "dcm": lambda: dcm_user(attraction, np.sort(generator.random(cutoff))[::-1]),
        "pbm": lambda: pbm_user(attraction, 1 / positions),
        "ubm": lambda: ubm_user(attraction, 1 / np.maximum(1, positions[:, None] - np.arange(cutoff + 1))),
        "ccm": lambda: ccm_user(attraction, (0.9, 0.7, 0.3)),
        "dbn": lambda: dbn_user(attraction, satisfaction, 0.9),
        "sdbn": lambda: sdbn_user(attraction, satisfaction),
    }
    if kind not in builders:
        raise RankPolicyError(unknown_name("kind of user", kind, builders))
    return builders[kind]()


def longest_list(user: User) -> int | None:
    """How many positions this user has parameters for; None: any number."""
    if user.kind in ("dcm", "pbm"):
        return user.parameters.shape[1]
    return len(user.parameters) if user.kind == "ubm" else None


def draw_clicks(user: User, ranking: ArrayLike, generator: np.random.Generator) -> NDArray[np.int8]:
    """Clicks (position,) of one session on a list of items."""
    items = np.asarray(ranking, np.int64)
    clicks, last_click = np.zeros(len(items), np.int8), 0
    for k, item in enumerate(items):
        examined = 1.0
        if user.kind in ("pbm", "ubm"):
            examined = user.parameters[0, k] if user.kind == "pbm" else user.parameters[k, last_click]
        clicks[k] = generator.random() < examined * user.attraction[item]
        last_click = k + 1 if clicks[k] else last_click
        if generator.random() >= _going_on(user, k, item)[clicks[k]]:
            break
    return clicks


def expected_reward(user: User, ranking: ArrayLike) -> float:
    """f(list): the probability of being satisfied, or the number of clicks expected, as said above.

    >>> round(expected_reward(dcm_user([0.5, 0.2], termination=[0.8, 0.5]), [0, 1]), 9)  # 1 - (1 - 0.8 * 0.5) (1 - 0.5 * 0.2)
    0.46
    """
    items = np.asarray(ranking, np.int64)
    last_click = np.zeros(len(items) + 1)  # for ubm: P(the last click so far was at this 1-based position)
    last_click[0] = examined = 1.0
    reward = 0.0
    for k, item in enumerate(items):
        a = user.attraction[item]
        if user.kind == "ubm":
            clicked = last_click[: k + 1] * user.parameters[k, : k + 1] * a
            last_click[: k + 1] -= clicked
            last_click[k + 1] = clicked.sum()
            reward += clicked.sum()
        elif user.kind == "pbm":
            reward += user.parameters[0, k] * a
        else:
            reward += examined * a * _satisfied(user, k, item)
            after_none, after_click = _going_on(user, k, item)
            examined *= (1 - a) * after_none + a * after_click
    return float(reward)


def _going_on(user: User, k: int, item: int) -> tuple[float, float]:
    """P(goes on to the next position) from an examined position k, after no click there and after one."""
    match user.kind:
        case "cascade":
            return 1.0, 0.0
        case "dcm":
            return 1.0, 1 - user.parameters[0, k]
        case "ccm":
            tau_1, tau_2, tau_3 = user.parameters[0]
            a = user.attraction[item]
            return tau_1, tau_2 * (1 - a) + tau_3 * a
        case "dbn":
            gamma = user.parameters[0, 0]
            return gamma, gamma * (1 - user.satisfaction[item])
        case _:
            return 1.0, 1.0


def _satisfied(user: User, k: int, item: int) -> float:
    """What a click at position k adds to the reward."""
    if user.kind == "dcm":
        return float(user.parameters[0, k])
    return float(user.satisfaction[item]) if user.kind == "dbn" else 1.0
