"""What each setting must be: its annotation. Constructors only store, so settings are checked when training starts."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from rankpolicy.types import RankPolicyError

KINDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
HIGHEST_SEED = 2**31 - 1  # LightGBM keeps seeds as 32-bit integers


def check_settings(ranker_class: type, settings: Mapping[str, Any]) -> None:
    """Refuse a value that is not of its setting's kind; a setting of any kind is left to what uses it.

    >>> from rankpolicy.rankers import PGRank
    >>> check_settings(PGRank, {"hidden": 64})
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: hidden must be a list of whole numbers; got 64. For a single one write (64,).
    """
    kinds = typing.get_type_hints(ranker_class)
    for name, value in settings.items():
        if not _is_of_kind(value, kinds[name]):
            single = typing.get_origin(kinds[name]) is tuple and _is_of_kind((value,), kinds[name])
            hint = f" For a single one write ({value!r},)." if single else ""
            raise RankPolicyError(f"{name} must be {_described(kinds[name])}; got {value!r:.80}.{hint}")
    seed = settings.get("random_state", 0)
    if not 0 <= seed <= HIGHEST_SEED:
        raise RankPolicyError(f"random_state must be a seed from 0 to {HIGHEST_SEED}; got {seed}.")


def plain(value: Any) -> Any:
    """A setting as JSON can hold it: numpy numbers as Python's, a reward by its name."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [plain(member) for member in value]
    if callable(value):
        return getattr(value, "name", None) or getattr(value, "__name__", type(value).__name__)
    return value


def _is_of_kind(value: Any, kind: Any) -> bool:
    if is_union(kind):
        return any(_is_of_kind(value, member) for member in typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        member = typing.get_args(kind)[0]
        return isinstance(value, tuple | list) and all(_is_of_kind(part, member) for part in value)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, kind) if kind in (str, type(None)) else True


def _described(kind: Any) -> str:
    if is_union(kind):
        return " or ".join(map(_described, typing.get_args(kind)))
    if typing.get_origin(kind) is tuple:
        return f"a list of {_described(typing.get_args(kind)[0]).removeprefix('a ')}s"
    return "None" if kind is type(None) else KINDS.get(kind, str(kind))


def is_union(kind: Any) -> bool:
    """Whether an annotation leaves a choice, as ``int | None`` does."""
    return isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union
