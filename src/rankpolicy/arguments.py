"""Checks of the arguments of public functions: numbers, texts and seeds of the right kind, with one wording for all."""

from __future__ import annotations

import collections.abc
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
    """Let a function refuse arguments of another kind than its annotations say, with an error in words.

    Numbers, texts, True and False, None, paths, sequences and the classes of this package are checked; other annotations are not.

    Parameters
    ----------
    function
        The function.
    """
    signature = inspect.signature(function)
    kinds: dict[str, Any] = {}

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kinds:
            kinds.update(_kinds_of(function))
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # Python's own words for a missing or unknown argument
        for name, value in given.items():
            kind = kinds.get(name, Any)
            if not _fits(value, kind):
                hint = f" Write [{value!r:.40}]." if isinstance(value, str) and _fits([value], kind) else ""
                raise RankPolicyError(f"{name} must be {_in_words(kind)}; got {_shown(value)}.{hint}")
        return function(*args, **kwargs)

    return checked


def _kinds_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function; one that is known to type checkers only stands for anything."""
    kinds: dict[str, Any] = {"return": Any}
    for name, annotation in inspect.get_annotations(function).items():
        try:
            kinds[name] = (
                eval(annotation, getattr(function, "__globals__", {})) if isinstance(annotation, str) else annotation
            )
        except (NameError, TypeError):
            kinds[name] = Any
    return kinds


def _fits(value: Any, kind: Any) -> bool:
    if is_union(kind):
        return any(_fits(value, member) for member in typing.get_args(kind))
    origin = typing.get_origin(kind)
    if origin is os.PathLike:
        return isinstance(value, os.PathLike)
    if origin is collections.abc.Sequence:
        (member,) = typing.get_args(kind)
        looks_at_members = member is str or typing.get_origin(member) is collections.abc.Sequence
        return _is_sequence(value) and (not looks_at_members or all(_fits(each, member) for each in value))
    if origin is not None:
        return True
    if (
        isinstance(kind, type)
        and kind.__module__.startswith("rankpolicy.")
        and not getattr(kind, "_is_protocol", False)
    ):
        return isinstance(value, kind)
    if kind in (int, float) and getattr(value, "ndim", None) == 0:
        value = value.item()  # an array of one number
    return is_of_kind(value, kind) if kind in _SIMPLE else True


def _is_sequence(value: Any) -> bool:
    """Lists, tuples, arrays and columns; no text, and no set, whose order is not known."""
    if isinstance(value, str | bytes | dict | set | frozenset | type):
        return False
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and getattr(value, "ndim", 1) > 0


def _in_words(kind: Any) -> str:
    if is_union(kind):
        return " or ".join(dict.fromkeys(_in_words(member) for member in typing.get_args(kind)))
    origin = typing.get_origin(kind)
    if origin is os.PathLike:
        return "a path"
    if origin is collections.abc.Sequence:
        (member,) = typing.get_args(kind)
        is_list = typing.get_origin(member) is collections.abc.Sequence
        return "a list of lists" if is_list else "a list of texts" if member is str else "a list"
    is_ours = isinstance(kind, type) and kind.__module__.startswith("rankpolicy.")
    return f"a {kind.__name__}" if is_ours else kind_in_words(kind)


def _shown(value: Any) -> str:
    return (
        f"{value!r:.80}"
        if isinstance(value, int | float | str | bytes | None)
        else f"{value!r:.60} ({type(value).__name__})"
    )


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


def as_array(name: str, values: Any) -> NDArray[Any]:
    """The values as an array.

    Parameters
    ----------
    name
        What they are called, for error messages.
    values
        An array, or lists of equal lengths.
    """
    import numpy as np

    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise RankPolicyError(
            f"{name} must be an array, or lists of equal lengths; got {values!r:.80} ({error})."
        ) from None


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
