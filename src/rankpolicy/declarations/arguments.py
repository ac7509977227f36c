"""Checks of the arguments of public functions: numbers, texts and seeds of the right kind, with one wording for all."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import os
import typing
from collections.abc import Callable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rankpolicy.declarations.settings import is_of_kind, is_union, kind_in_words
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")
_SIMPLE = (int, float, str, bool, type(None))
_LISTS = (collections.abc.Sequence, collections.abc.Mapping)


def checked_kinds(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse arguments of another kind than its annotations say, with an error in words.

    Numbers, texts, True and False, None, paths, choices, lists, mappings, functions, arrays and the classes of this package are checked;
    other annotations are not. What is annotated as an array of numbers arrives as one, also where a list was given.

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
            given = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # Python's own words for a missing or unknown argument
        for name, value in given.arguments.items():
            given.arguments[name] = checked_kind(name, value, kinds.get(name, Any))
        return function(*given.args, **given.kwargs)

    return checked


def checked_kind(name: str, value: Any, kind: Any) -> Any:
    """The value, if it is of the kind that an annotation says; a list where an array of numbers is expected becomes one.

    Parameters
    ----------
    name
        What it is called, for error messages.
    value
        The value.
    kind
        The annotation, not as a text.
    """
    if not _fits(value, kind):
        hint = f" Write [{value!r:.40}]." if isinstance(value, str) and _fits([value], kind) else ""
        raise RankPolicyError(f"{name} must be {_in_words(kind)}; got {_shown(value)}.{hint}")
    if name == "random_state" and isinstance(value, Integral):
        return checked_seed(value)
    if isinstance(value, Integral) and not -(2**63) <= int(value) < 2**63:
        raise RankPolicyError(f"{name} must be a number of at most 64 bits; got {value!r:.80}.")
    found = next((each for each in _choices_of(kind) if _fits(value, each)), kind)
    if _dtype_of(found):
        return _as_numbers(value)
    return value.item() if found in (int, float) and getattr(value, "ndim", None) == 0 else value


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


def _choices_of(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if is_union(kind) else (kind,)


def _fits(value: Any, kind: Any) -> bool:
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if is_union(kind):
        others = [member for member in members if not _dtype_of(member) and member is not type(None)]
        if 0 < len(others) < len(members) and any(map(_dtype_of, members)):
            return True  # an array or something else: the function knows better what to advise
        return any(_fits(value, member) for member in members)
    if origin is os.PathLike:
        return isinstance(value, os.PathLike)
    if origin is typing.Literal:
        return any(type(value) is type(member) for member in members)  # an unknown name is the function's to refuse
    if origin is collections.abc.Callable:
        return callable(value)
    if origin is type:
        return isinstance(value, type) and (not isinstance(members[0], type) or issubclass(value, members[0]))
    if origin is collections.abc.Mapping:
        return isinstance(value, collections.abc.Mapping) and all(
            _fits(key, members[0]) and _fits(each, members[1]) for key, each in value.items()
        )
    if origin is collections.abc.Iterable:
        is_list = _is_sequence(value) and _members_fit(value, members[0])
        return is_list or isinstance(value, collections.abc.Set | collections.abc.Iterator)
    if origin is collections.abc.Sequence:
        return _is_sequence(value) and _members_fit(value, members[0])
    if dtype := _dtype_of(kind):
        numbers = _as_numbers(value)
        return numbers is not None and (numbers.size == 0 or numbers.dtype.kind in ("biu" if dtype == "i" else "biuf"))
    if origin is tuple and members[-1] is Ellipsis:
        return is_of_kind(value, kind)
    if origin is not None:
        return True
    if _is_ours(kind):
        return isinstance(value, kind)
    if kind in (int, float) and getattr(value, "ndim", None) == 0:
        value = value.item()  # an array of one number
    return is_of_kind(value, kind) if kind in _SIMPLE else True


def _members_fit(values: Any, kind: Any) -> bool:
    if kind in (int, float):
        numbers = _as_numbers(values)
        return numbers is not None and numbers.ndim == 1 and (numbers.size == 0 or numbers.dtype.kind in "biuf")
    is_checked = kind is str or _is_ours(kind) or typing.get_origin(kind) in _LISTS
    return not is_checked or all(_fits(each, kind) for each in values)


def _dtype_of(kind: Any) -> str:
    """What an array annotation holds: "i" for whole numbers, "f" for numbers; empty where it is anything, or no array."""
    import numpy as np

    if typing.get_origin(kind) is not np.ndarray:
        return ""
    (held,) = typing.get_args(typing.get_args(kind)[1]) or (None,)
    if not isinstance(held, type) or not issubclass(held, np.number):
        return ""
    return "i" if issubclass(held, np.integer) else "f"


def _as_numbers(value: Any) -> NDArray[Any] | None:
    import numpy as np

    if isinstance(value, str | bytes | collections.abc.Mapping | collections.abc.Set):
        return None
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def _is_ours(kind: Any) -> bool:
    """Whether this is a class of this package, and not a protocol, which other classes may satisfy."""
    return (
        isinstance(kind, type)
        and kind.__module__.startswith("rankpolicy.")
        and not getattr(kind, "_is_protocol", False)
    )


def _is_sequence(value: Any) -> bool:
    """Lists, tuples, arrays and columns; no text, no frame or sparse matrix, and no set, whose order is not known."""
    if (
        isinstance(value, str | bytes | dict | set | frozenset | type)
        or hasattr(value, "columns")
        or hasattr(value, "getnnz")
    ):
        return False
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and getattr(value, "ndim", 1) > 0


def _in_words(kind: Any) -> str:
    if is_union(kind):
        return " or ".join(dict.fromkeys(_in_words(member) for member in typing.get_args(kind)))
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if origin is os.PathLike:
        return "a path"
    if origin is typing.Literal:
        return " or ".join(dict.fromkeys(kind_in_words(type(member)) for member in members))
    if origin is collections.abc.Callable:
        return "a function"
    if origin is type:
        return f"a class of {getattr(members[0], '__name__', members[0])}"
    if origin is collections.abc.Mapping:
        return "a mapping" if members[1] in (Any, object) else f"a mapping to {_many(members[1])}"
    if origin in (collections.abc.Sequence, collections.abc.Iterable):
        return "a list" if members[0] in (Any, object) else f"a list of {_many(members[0])}"
    if dtype := _dtype_of(kind):
        return "an array of whole numbers" if dtype == "i" else "an array of numbers"
    return f"a {kind.__name__}" if _is_ours(kind) else kind_in_words(kind)


def _many(kind: Any) -> str:
    if is_union(kind) or typing.get_origin(kind) not in (None, collections.abc.Sequence):
        return "values"
    if kind is str or kind in (int, float):
        return {str: "texts", int: "whole numbers", float: "numbers"}[kind]
    return "lists" if typing.get_origin(kind) else str(getattr(kind, "__name__", kind))


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


def checked_level(level: Any) -> float:
    """The level of an interval, if it lies between 0 and 1.

    Parameters
    ----------
    level
        The level.
    """
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise RankPolicyError(f"level must lie between 0 and 1, such as 0.95; got {level!r:.60}.")
    return float(level)


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
        return np.array(without_mask(values), dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise RankPolicyError(f"{name} must be numbers; got {values!r:.80} ({error}).") from None


def as_whole_numbers(name: str, values: Any) -> NDArray[np.int64]:
    """The values as an array of whole numbers.

    Parameters
    ----------
    name
        What they are called, for error messages.
    values
        Whole numbers, in lists or an array.
    """
    import numpy as np

    array = as_array(name, values)
    if array.size and array.dtype.kind not in "iu":
        raise RankPolicyError(f"{name} must be whole numbers; got {_shown(values)}.")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise RankPolicyError(f"{name} must be numbers of at most 64 bits; got {array.max()}.")
    return array.astype(np.int64)


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
