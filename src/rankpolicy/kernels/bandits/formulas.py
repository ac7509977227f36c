"""Formulas in plain Python that compiled code calls, and the KL-UCB index.

Declaring a formula does not load numba, so it can stand next to its settings.

KL-UCB of a Bernoulli mean (Garivier & Cappé 2011) is the largest q in [p, 1] with kl(p, q) <= d.
kl(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)) is convex in q. Newton's method from the right of the root therefore approaches it
without overshooting, and a start to the left of it lands on the right after one step.
"""

from __future__ import annotations

import math
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


HIGHEST = 1.0 - 1e-12  # log(1 - q) is infinite at 1
# The error after a step is about the square of the step, so after one this small it is far below 1e-9.
SMALLEST_STEP = 1e-8
MOST_STEPS = 50


@formula
def kl_ucb_index(mean: float, divergence: float) -> float:
    """max {q in [mean, 1] : kl(mean, q) <= divergence}."""
    if mean >= 1.0 or divergence <= 0.0:
        return min(mean, 1.0)
    if mean <= 0.0:
        return 1.0 - math.exp(-divergence)
    other = 1.0 - mean
    target = (
        divergence - mean * math.log(mean) - other * math.log(other)
    )  # value of -p log q - (1 - p) log(1 - q) at the root
    # The root if -p log q, which is positive, were 0: right of the true root, and not so near 1 that steps become short.
    highest = min(HIGHEST, 1.0 - math.exp(-target / other))
    q = min(highest, mean + math.sqrt(2.0 * mean * other * divergence) + divergence)
    for _ in range(MOST_STEPS):
        if q <= mean:  # the divergence is smaller than rounding errors
            return mean
        before = q
        slope = (q - mean) / (q * (1.0 - q))
        q += (target + mean * math.log(q) + other * math.log(1.0 - q)) / slope
        q = min(highest, q)
        if abs(q - before) <= SMALLEST_STEP * (1.0 - q):
            break
    return q
