"""Users to simulate: one constructor for each kind, random ones, their clicks, and what a list is worth to them.

A user examines the first position with certainty, except for PBM and UBM. With a = attraction and s = satisfaction of an item:

    cascade  clicks with a, stops at the first click                                 reward: P(a click) = 1 - prod (1 - a)
    dcm      clicks with a, stops after a click at position k with v_k               reward: P(satisfied) = 1 - prod (1 - v_k a)
    pbm      examines position k with e_k, clicks with a                             reward: expected clicks = sum e_k a
    ubm      examines k with e[k, position of the last click above], clicks with a   reward: expected clicks
    ccm      goes on with tau_1 after no click, tau_2 (1 - a) + tau_3 a after one    reward: expected clicks
    dbn      clicks with a, is then satisfied with s and stops; otherwise goes on with gamma (sdbn: 1)   reward: P(satisfied)

Each is a click model of rankpolicy.clicks, where its formulas are written.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.clicks.models.definition import User
from rankpolicy.declarations.arguments import as_float64, checked_kinds, seeded, whole_number
from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.types import RankPolicyError, unknown_name


@checked_kinds
def cascade_user(attraction: ArrayLike) -> User:
    """A user of the cascade model, who stops at the first click.

    Parameters
    ----------
    attraction
        P(click | examined) of every item (item,).
    """
    return _user("cm", {"attraction": attraction})


@checked_kinds
def dcm_user(attraction: ArrayLike, termination: ArrayLike) -> User:
    """A user of the dependent click model.

    Parameters
    ----------
    attraction
        P(click | examined) of every item (item,).
    termination
        P(satisfied after a click) at each position (position,), in any order.
    """
    return _user("dcm", {"attraction": attraction, "stop": termination})


@checked_kinds
def pbm_user(attraction: ArrayLike, examination: ArrayLike) -> User:
    """A user of the position-based model.

    Parameters
    ----------
    attraction
        P(click | examined) of every item (item,).
    examination
        P(examined) of each position (position,).
    """
    return _user("pbm", {"attraction": attraction, "examination": examination})


@checked_kinds
def ubm_user(attraction: ArrayLike, examination: ArrayLike) -> User:
    """A user of the user browsing model.

    Parameters
    ----------
    attraction
        P(click | examined) of every item (item,).
    examination
        P(examined) (position, position + 1): column r is for a last click at position r, counted from 1; column 0 for none.
    """
    return _user("ubm", {"attraction": attraction, "examination": examination})


@checked_kinds
def ccm_user(attraction: ArrayLike, continuation: ArrayLike) -> User:
    """A user of the click chain model.

    Parameters
    ----------
    attraction
        P(click | examined) of every item (item,).
    continuation
        tau_1, tau_2 and tau_3.
    """
    return _user("ccm", {"attraction": attraction, "continuation": continuation})


@checked_kinds
def dbn_user(attraction: ArrayLike, satisfaction: ArrayLike, continuation: float) -> User:
    """A user of the dynamic Bayesian network.

    Parameters
    ----------
    attraction
        P(click | examined) of every item (item,).
    satisfaction
        P(satisfied | clicked) of every item (item,).
    continuation
        gamma, P(goes on | not satisfied).
    """
    return _user("dbn", {"attraction": attraction, "satisfaction": satisfaction, "continuation": [continuation]})


@checked_kinds
def sdbn_user(attraction: ArrayLike, satisfaction: ArrayLike) -> User:
    """A user of the simplified dynamic Bayesian network, who stops only when satisfied.

    Parameters
    ----------
    attraction
        P(click | examined) of every item (item,).
    satisfaction
        P(satisfied | clicked) of every item (item,).
    """
    return _user("sdbn", {"attraction": attraction, "satisfaction": satisfaction})


@checked_kinds
def random_user(kind: str, num_items: int, cutoff: int, *, random_state: int) -> User:
    """A user drawn at random: attraction, satisfaction and v are uniform, examination and continuation typical of logs.

    PBM examines position k with 1/k, UBM with 1/(k - last click), CCM goes on with (0.9, 0.7, 0.3), DBN with 0.9.

    Parameters
    ----------
    kind
        cascade, dcm, pbm, ubm, ccm, dbn or sdbn.
    num_items
        Number of items.
    cutoff
        Length of the lists that the user can be shown.
    random_state
        Seed; the same seed gives the same user.
    """
    whole_number("num_items", num_items, at_least=1)
    whole_number("cutoff", cutoff, at_least=1)
    generator = seeded(random_state)
    attraction, satisfaction = generator.random(num_items), generator.random(num_items)
    positions = np.arange(1, cutoff + 1)
    termination = np.sort(generator.random(cutoff))[::-1]
    parameters: dict[str, dict[str, NDArray[np.float64]]] = {
        "cascade": {},
        "dcm": {"stop": termination},
        "pbm": {"examination": 1 / positions},
        "ubm": {"examination": 1 / np.maximum(1, positions[:, None] - np.arange(cutoff + 1))},
        "ccm": {"continuation": np.array([0.9, 0.7, 0.3])},
        "dbn": {"satisfaction": satisfaction, "continuation": np.array([0.9])},
        "sdbn": {"satisfaction": satisfaction},
    }
    if kind not in parameters:
        raise RankPolicyError(unknown_name("kind of user", kind, parameters))
    return User(
        kind="cm" if kind == "cascade" else kind,
        num_items=num_items,
        parameters={"attraction": attraction, **parameters[kind]},
    )


def draw_clicks(user: User, ranking: ArrayLike, generator: np.random.Generator) -> NDArray[np.int8]:
    """Clicks (position,) of one session on a list.

    Parameters
    ----------
    user
        The user who is shown the list.
    ranking
        Items shown, from the top.
    generator
        Where random numbers come from.
    """
    from rankpolicy.kernels.clicks.walk import draw_clicks as draw

    walk = user.walk(ranking)
    clicks = np.zeros(len(walk.attraction), np.int8)
    draw(walk, generator.integers(2**64, dtype=np.uint64) if HAS_NUMBA else generator, clicks)
    return clicks


@checked_kinds
def expected_reward(user: User, ranking: ArrayLike) -> float:
    """What a list is worth: P(satisfied) or the expected number of clicks, as the table above says for each kind.

    Parameters
    ----------
    user
        The user who is shown the list.
    ranking
        Items shown, from the top.

    >>> round(expected_reward(dcm_user([0.5, 0.2], termination=[0.8, 0.5]), [0, 1]), 9)  # 1 - (1 - 0.8 * 0.5) (1 - 0.5 * 0.2)
    0.46
    """
    return reward_of(user, user.checked_items("ranking", ranking))


def reward_of(user: User, ranking: ArrayLike) -> float:
    """The same without a check of the items, for loops over many lists."""
    from rankpolicy.kernels.clicks.walk import expected_reward as reward

    walk = user.walk(ranking)
    reached, probabilities = np.empty(walk.examination.shape[1]), np.empty(len(walk.attraction))
    return float(reward(walk, user.click_rewards(ranking), reached, probabilities))


def _user(kind: str, parameters: dict[str, ArrayLike]) -> User:
    arrays = {name: as_float64(name, values) for name, values in parameters.items()}
    return User(kind=kind, num_items=arrays["attraction"].size, parameters=arrays)
