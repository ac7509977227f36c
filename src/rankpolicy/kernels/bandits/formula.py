"""Formulas in plain Python that compiled code calls. Declaring one does not load numba, so a formula can stand beside its settings."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_formulas: dict[Callable[..., Any], bool] = {}  # whether numba knows the formula
_registers: list[
    Callable[[Callable[..., Any]], Any]
] = []  # numba's function that makes a formula known, once numba is loaded


def formula(function: Function) -> Function:
    """Let compiled steps call ``function``, which stays a plain Python function and may use ``math`` and other formulas."""
    _formulas.setdefault(function, False)
    _register_new()
    return function


def register_formulas(register: Callable[[Callable[..., Any]], Any]) -> None:
    """Make all formulas, those declared so far and those to come, known to numba."""
    _registers.append(register)
    _register_new()


def code_fingerprint(*functions: Callable[..., Any]) -> int:
    """A number, 0 or more, that changes with the code of these functions."""
    codes = [function.__code__ for function in functions]
    return zlib.crc32(repr([(code.co_code, code.co_consts, code.co_names) for code in codes]).encode())


def _register_new() -> None:
    for register in _registers:
        for function in [function for function, is_known in _formulas.items() if not is_known]:
            register(function)
            _formulas[function] = True
