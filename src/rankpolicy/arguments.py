"""Checks of the arguments of public functions: numbers, texts and seeds of the right kind, with one wording for all."""

from __future__ import annotations

import functools
import inspect
import os
import typing
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rankpolicy.settings import is_of_kind, is_union, kind_in_words
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")
_SIMPLE = (int, float, str, bool, type(None))


def checked_kinds(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse arguments of another kind than its annotations say, where these are numbers, texts, True or False, or None.

    Parameters
    ----------
    function
        The function; arguments of other annotations are not looked at.
    """
    signature = inspect.signature(function)
    kinds: dict[str, Any] = {}

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kinds:
            hints = typing.get_type_hints(function)
            kinds.update(
                {name: hints[name] for name in signature.parameters if _is_simple(hints.get(name))}, **{"": None}
            )
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # Python's own words for a missing or unknown argument
        for name, value in given.items():
            if name in kinds and not is_of_kind(value, kinds[name]):
                raise RankPolicyError(f"{name} must be {kind_in_words(kinds[name])}; got {value!r:.80}.")
        return function(*args, **kwargs)

    return checked


def seeded(random_state: Any) -> np.random.Generator:
    """A generator of random numbers from a seed.

    Parameters
    ----------
    random_state
        A whole number, 0 or more; None: another seed each time.
    """
    import numpy as np

    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(checked_seed(random_state))


def checked_seed(random_state: Any) -> int:
    """A seed, if it is a whole number from 0 to 2^63 - 1.

    Parameters
    ----------
    random_state
        The seed.
    """
    if not isinstance(random_state, Integral) or isinstance(random_state, bool) or not 0 <= int(random_state) < 2**63:
        raise RankPolicyError(
            f"random_state must be a seed, a whole number from 0 to 2^63 - 1; got {random_state!r:.80}."
        )
    return int(random_state)


def whole_number(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """The value, if it is a whole number in this range.

    Parameters
    ----------
    name
        What it is called, for error messages.
    value
        The value.
    at_least
        The lowest that is allowed.
    at_most
        The highest that is allowed; None: any.
    """
    if isinstance(value, Integral) and not isinstance(value, bool) and at_least <= int(value):
        if at_most is None or int(value) <= at_most:
            return int(value)
        raise RankPolicyError(f"{name} must be at most {at_most}; got {value!r:.80}.")
    raise RankPolicyError(f"{name} must be a whole number, {at_least} or more; got {value!r:.80}.")


def as_float64(name: str, values: Any) -> NDArray[np.float64]:
    """A copy of the values as float64 numbers.

    Parameters
    ----------
    name
        What they are called, for error messages.
    values
        Numbers, in lists or an array.
    """
    import numpy as np

    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RankPolicyError(f"{name} must be numbers; got {values!r:.80} ({error}).") from None


def checked_path(path: Any) -> str:
    """A path that is a text or a path object and not empty.

    Parameters
    ----------
    path
        The path.
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise RankPolicyError(f"a path must be a text or a pathlib.Path that names a file; got {path!r:.80}.")
    return str(os.fspath(path))


def _is_simple(kind: Any) -> bool:
    return all(_is_simple(member) for member in typing.get_args(kind)) if is_union(kind) else kind in _SIMPLE
