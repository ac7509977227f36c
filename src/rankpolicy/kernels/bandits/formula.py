"""Formulas in plain Python that compiled code may call. Declaring one does not load numba, so a formula can stand beside its settings."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_declared: list[Callable[..., Any]] = []
_register: list[Callable[[Callable[..., Any]], Any]] = []  # numba's function, once numba is loaded


def formula(function: Function) -> Function:
    """Let compiled steps call ``function``, which stays a plain Python function and may use ``math`` and other formulas."""
    if _register:
        _register[0](function)
    else:
        _declared.append(function)
    return function


def register_formulas(register: Callable[[Callable[..., Any]], Any]) -> None:
    """Make all formulas, those declared so far and those to come, known to numba."""
    _register.append(register)
    while _declared:
        register(_declared.pop())


def code_fingerprint(*functions: Callable[..., Any]) -> int:
    """A number, 0 or more, that changes with the code of these functions."""
    codes = [function.__code__ for function in functions]
    return zlib.crc32(repr([(code.co_code, code.co_consts, code.co_names) for code in codes]).encode())
