"""Checks of the numbers that users pass to explanations."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from rankpolicy.types import RankPolicyError


def check_whole(name: str, value: Any, *, at_least: int) -> None:
    """Refuse what is not a whole number of at least so much.

    Parameters
    ----------
    name
        Name of the argument.
    value
        What was given.
    at_least
        The lowest number that will do.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        raise RankPolicyError(f"{name} must be a whole number, {at_least} or more; got {value!r:.60}.")


def check_level(level: Any) -> None:
    """Refuse what is not a level of intervals.

    Parameters
    ----------
    level
        What was given.
    """
    if not isinstance(level, numbers.Real) or not 0 < float(level) < 1:
        raise RankPolicyError(f"level must lie between 0 and 1, such as 0.95; got {level!r:.60}.")


def generator_of(random_state: Any) -> np.random.Generator:
    """The source of randomness of a seed.

    Parameters
    ----------
    random_state
        A seed, 0 or more; None draws a new one.
    """
    if random_state is not None:
        check_whole("random_state", random_state, at_least=0)
    return np.random.default_rng(random_state)
