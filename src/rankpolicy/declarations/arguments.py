"""Checks of the arguments of public functions: numbers, texts and seeds of the right kind, with one wording for all."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rankpolicy.declarations.kinds import as_numbers, is_array_of_one, kind_of
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")


def checked_kinds(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse arguments of another kind than its annotations say, with an error in words.

    Numbers, texts, True and False, None, paths, choices, lists, mappings, functions, arrays and the classes of this package are checked;
    other annotations are not. What is annotated as an array of numbers arrives as one, also where a list was given.
    """
    signature = inspect.signature(function)
    kinds: dict[str, Any] = {}

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kinds:
            kinds.update(_kinds_of(function))
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # Python's own words for a missing or unknown argument
        for name, value in bound.arguments.items():
            bound.arguments[name] = checked_kind(name, value, kinds.get(name, Any))
        return function(*bound.args, **bound.kwargs)

    return checked


def checked_kind(name: str, value: Any, annotation: Any) -> Any:
    """The value, if it is of this kind; a list where an array of numbers is expected becomes one, an array of one number the number."""
    kind = kind_of(annotation)
    number = value.item() if is_array_of_one(value) else value
    choices = kind.choices or (kind,)
    choice = next((choice for choice in choices if choice.fits(number if choice.is_number else value)), kind)
    value = number if choice.is_number else value
    if not choice.fits(value):
        hint = f" Write [{value!r:.40}]." if isinstance(value, str) and kind.fits([value]) else ""
        raise RankPolicyError(f"{name} must be {kind.words}; got {_shown(value)}.{hint}")
    if name == "random_state" and isinstance(value, Integral):
        return checked_seed(value)
    if isinstance(value, Integral) and not -(2**63) <= int(value) < 2**63:
        raise RankPolicyError(f"{name} must be a number of at most 64 bits; got {value!r:.80}.")
    return as_numbers(value) if choice.is_array else value


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


def _shown(value: Any) -> str:
    return (
        f"{value!r:.80}"
        if isinstance(value, int | float | str | bytes | None)
        else f"{value!r:.60} ({type(value).__name__})"
    )


def seeded(random_state: Any) -> np.random.Generator:
    """A generator of random numbers from a seed."""
    import numpy as np

    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(checked_seed(random_state))


def checked_seed(random_state: Any) -> int:
    """A seed, if it is a whole number from 0 to 2^63 - 1."""
    if not isinstance(random_state, Integral) or isinstance(random_state, bool) or not 0 <= int(random_state) < 2**63:
        raise RankPolicyError(
            f"random_state must be a seed, a whole number from 0 to 2^63 - 1; got {random_state!r:.80}."
        )
    return int(random_state)


def whole_number(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """The value, if it is a whole number in this range."""
    if isinstance(value, Integral) and not isinstance(value, bool) and at_least <= int(value):
        if at_most is None or int(value) <= at_most:
            return int(value)
        raise RankPolicyError(f"{name} must be at most {at_most}; got {value!r:.80}.")
    raise RankPolicyError(f"{name} must be a whole number, {at_least} or more; got {value!r:.80}.")


def checked_level(level: Any) -> float:
    """The level of an interval, if it lies between 0 and 1."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise RankPolicyError(f"level must lie between 0 and 1, such as 0.95; got {level!r:.60}.")
    return float(level)


def as_array(name: str, values: Any) -> NDArray[Any]:
    """The values as an array."""
    import numpy as np

    try:
        return np.asarray(without_mask(values))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise RankPolicyError(
            f"{name} must be an array, or lists of equal lengths; got {values!r:.80} ({error})."
        ) from None


def without_mask(values: Any) -> Any:
    """The values of a masked array or a list of such, NaN (None among values that are no numbers) if masked; anything else as it is."""
    import numpy as np

    if isinstance(values, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in values):
        values = np.ma.array(list(values))
    if not isinstance(values, np.ma.MaskedArray):
        return values
    is_number = values.dtype.kind in "biuf"
    kind, missing = (np.float64, np.nan) if is_number else (object, None)
    return np.ma.filled(values.astype(kind), missing)


def as_float64(name: str, values: Any) -> NDArray[np.float64]:
    """A copy of the values as float64 numbers."""
    import numpy as np

    try:
        return np.array(without_mask(values), dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise RankPolicyError(f"{name} must be numbers; got {values!r:.80} ({error}).") from None


def as_whole_numbers(name: str, values: Any) -> NDArray[np.int64]:
    """The values as an array of whole numbers."""
    import numpy as np

    array = as_array(name, values)
    if array.size and array.dtype.kind not in "iu":
        raise RankPolicyError(f"{name} must be whole numbers; got {_shown(values)}.")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise RankPolicyError(f"{name} must be numbers of at most 64 bits; got {array.max()}.")
    return array.astype(np.int64)


def checked_path(path: Any) -> str:
    """A path that is a text or a path object and not empty."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise RankPolicyError(f"a path must be a text or a pathlib.Path that names a file; got {path!r:.80}.")
    return str(os.fspath(path))
