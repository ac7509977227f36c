"""What annotations allow: the one test of the kind of a value, for settings and for arguments, and its words in error messages."""

from __future__ import annotations

import collections.abc
import functools
import os
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

_HIGHEST: Any = sys.float_info.max
_PLURALS = {str: "texts", int: "whole numbers", float: "numbers"}


@dataclass(frozen=True, slots=True)
class Kind:
    """What one annotation allows."""

    fits: Callable[[Any], bool]
    words: str  # completes "must be ..."
    choices: tuple[Kind, ...] = ()  # of a union
    is_number: bool = False
    is_array: bool = False
    is_mapping: bool = False  # or a list of mappings


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
