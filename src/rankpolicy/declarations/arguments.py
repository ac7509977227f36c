"""Checks of the arguments of public functions: numbers, texts and seeds of the right kind, with one wording for all.

What annotations allow: the one test of the kind of a value, for settings and for arguments, and its words in error messages.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_HIGHEST: Any = sys.float_info.max
_PLURALS = {str: "texts", int: "whole numbers", float: "numbers"}


@dataclass(frozen=True)
class Kind:
    """What one annotation allows."""

    fits: Callable[[Any], bool]
    words: str  # completes "must be ..."
    choices: tuple[Kind, ...] = ()  # of a union
    is_number: bool = False
    is_array: bool = False
    is_mapping: bool = False  # or a list of mappings

    @functools.cached_property
    def is_open(self) -> bool:
        """Whether a class that reads it refuses wrong values itself: an array or a mapping, where it knows better what to advise."""
        return any(choice.is_array or choice.is_mapping for choice in self.choices or (self,))


def _is_bool(value: Any) -> bool:
    # numpy is not imported here: help pages read settings too, and no value is numpy's before it is loaded.
    numpy = sys.modules.get("numpy")
    return isinstance(value, bool) or (numpy is not None and isinstance(value, numpy.bool_))


def _is_int(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_float(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and -_HIGHEST <= value <= _HIGHEST


def _is_anything(value: Any) -> bool:
    return True


_SIMPLE = {
    bool: Kind(_is_bool, "true or false"),
    int: Kind(_is_int, "a whole number", is_number=True),
    float: Kind(_is_float, "a number", is_number=True),
    str: Kind(lambda value: isinstance(value, str), "a string"),
    type(None): Kind(lambda value: value is None, "None"),
    None: Kind(lambda value: value is None, "None"),
    Any: Kind(_is_anything, "any"),
}


@functools.cache  # one per annotation: calls of public functions only run the tests
def kind_of(annotation: Any) -> Kind:
    """The kind that an annotation names; an annotation that is not checked allows anything."""
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    if is_union(annotation):
        return _union(annotation)
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple:
        return _tuple(members)
    if origin in (collections.abc.Sequence, collections.abc.Iterable):
        return _sequence(members[0], is_ordered=origin is collections.abc.Sequence)
    if origin is collections.abc.Mapping:
        return _mapping(*members)
    if origin is typing.Literal:
        classes: Any = dict.fromkeys(map(type, members))
        words = " or ".join(kind_of(member).words for member in classes)
        return Kind(lambda value: type(value) in classes, words)  # an unknown name is the function's to refuse
    if origin is collections.abc.Callable:
        return Kind(callable, "a function")
    if origin is os.PathLike:
        return Kind(lambda value: isinstance(value, os.PathLike), "a path")
    if origin is type:
        return _class_of(members[0])
    return _array(annotation) or _class(annotation)


def is_union(annotation: Any) -> bool:
    """Whether an annotation leaves a choice, as ``int | None`` does."""
    return isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union


def allows_none(annotation: Any) -> bool:
    """Whether None is of this kind."""
    return is_union(annotation) and type(None) in typing.get_args(annotation)


def is_array_of_one(value: Any) -> bool:
    """Whether this is an array without axes, which stands for its number."""
    return getattr(value, "ndim", None) == 0


def as_numbers(value: Any) -> Any:
    """The values as an array, whatever they are; None where they are none."""
    import numpy as np

    if isinstance(value, str | bytes | collections.abc.Mapping | collections.abc.Set):
        return None
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def _union(annotation: Any) -> Kind:
    choices = tuple(map(kind_of, typing.get_args(annotation)))
    words = " or ".join(dict.fromkeys(choice.words for choice in choices))
    # An array or something else, such as a name: the function knows better what to advise.
    is_mixed = len({choice.is_array for choice in choices if choice.words != "None"}) > 1
    return Kind(_is_anything if is_mixed else lambda value: any(c.fits(value) for c in choices), words, choices)


def _tuple(members: tuple[Any, ...]) -> Kind:
    member = kind_of(members[0])
    words = f"a list of {member.words.removeprefix('a ')}s"
    if members[-1] is not Ellipsis:
        return Kind(_is_anything, words)
    return Kind(lambda value: isinstance(value, tuple | list) and all(map(member.fits, value)), words)


def _sequence(annotation: Any, *, is_ordered: bool) -> Kind:
    member_fits = kind_of(annotation).fits
    words = "a list" if annotation in (Any, object) else f"a list of {_many(annotation)}"

    def members_fit(values: Any) -> bool:
        if member_fits is _is_anything:
            return True
        if annotation not in (int, float):
            return all(map(member_fits, values))
        numbers = as_numbers(values)  # one test for all members, which may be millions
        return numbers is not None and numbers.ndim == 1 and (numbers.size == 0 or numbers.dtype.kind in "biuf")

    def fits(value: Any) -> bool:
        if _is_sequence(value):
            return members_fit(value)
        return not is_ordered and isinstance(value, collections.abc.Set | collections.abc.Iterator)

    return Kind(fits, words, is_mapping=kind_of(annotation).is_mapping)


def _is_sequence(value: Any) -> bool:
    """Lists, tuples, arrays and columns; no text, no frame or sparse matrix, and no set, whose order is not known."""
    if isinstance(value, str | bytes | dict | set | frozenset | type):
        return False
    if hasattr(value, "columns") or hasattr(value, "getnnz"):
        return False
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and getattr(value, "ndim", 1) > 0


def _mapping(keys: Any, values: Any) -> Kind:
    key_fits, value_fits = kind_of(keys).fits, kind_of(values).fits
    words = "a mapping" if values in (Any, object) else f"a mapping to {_many(values)}"
    return Kind(
        lambda value: (
            isinstance(value, collections.abc.Mapping)
            and all(key_fits(name) and value_fits(member) for name, member in value.items())
        ),
        words,
        is_mapping=True,
    )


def _class_of(base: Any) -> Kind:
    is_checked = isinstance(base, type)
    return Kind(
        lambda value: isinstance(value, type) and (not is_checked or issubclass(value, base)),
        f"a class of {getattr(base, '__name__', base)}",
    )


def _class(annotation: Any) -> Kind:
    """Classes of this package are checked; protocols are not, which other classes may satisfy."""
    name = str(getattr(annotation, "__name__", annotation))
    is_ours = isinstance(annotation, type) and annotation.__module__.startswith("rankpolicy.")
    if not is_ours or getattr(annotation, "_is_protocol", False):
        return Kind(_is_anything, name)
    return Kind(lambda value: isinstance(value, annotation), f"{'an' if name[0] in 'AEIOU' else 'a'} {name}")


def _array(annotation: Any) -> Kind | None:
    """The kind of an array of numbers; None for other annotations."""
    if getattr(typing.get_origin(annotation), "__name__", "") != "ndarray":
        return None
    import numpy as np

    (held,) = typing.get_args(typing.get_args(annotation)[1]) or (None,)
    if not isinstance(held, type) or not issubclass(held, np.number):
        return None
    is_whole = issubclass(held, np.integer)

    def fits(value: Any) -> bool:
        numbers = as_numbers(value)
        return numbers is not None and (numbers.size == 0 or numbers.dtype.kind in ("biu" if is_whole else "biuf"))

    return Kind(fits, "an array of whole numbers" if is_whole else "an array of numbers", is_array=True)


def _many(annotation: Any) -> str:
    """Several members of this kind, in words."""
    if is_union(annotation) or typing.get_origin(annotation) not in (None, collections.abc.Sequence):
        return "values"
    if annotation in _PLURALS:
        return _PLURALS[annotation]
    return "lists" if typing.get_origin(annotation) else str(getattr(annotation, "__name__", annotation))


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
    choice = kind
    for member in kind.choices or (kind,):
        if member.fits(number if member.is_number else value):
            choice = member
            break
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
