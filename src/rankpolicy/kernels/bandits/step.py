"""The step functions of a bandit: how they look and how they are compiled.

A bandit is two functions over plain arrays:

    rank(memory, available, generator, ranking)   fills ranking with the first items of a list of the available ones, best first
    learn(memory, ranking, clicks, weight)        adds weight times what the clicks on a shown list reveal to memory.statistics

All bandits share these signatures, so one compiled loop and one Python class serve them all. ``ranking`` is never longer than
``available``. ``weight`` is 1; an additive bandit is also called with -1 to forget a list that has left the window. Counting steps,
discounting and windows are done by ``learn_log`` (counts.py). ``generator`` is a numpy Generator, which draws the same numbers in compiled
code and in Python. Without numba the same functions run as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.kernels.bandits.formulas import register_formulas
from rankpolicy.kernels.bandits.memory import Memory

if HAS_NUMBA:
    import numba
    from numba import types
    from numba.extending import register_jitable

    from rankpolicy.kernels import unique_symbols  # noqa: F401  (before anything is compiled)

    register_formulas(register_jitable)
    type_of: Any = numba.typeof
    MEMORY = type_of(
        Memory(
            steps=np.zeros(1, np.int64),
            statistics=np.zeros((1, 1, 1)),
            settings=np.zeros(1),
            features=np.zeros((1, 1)),
            discount=1.0,
            feedback=0,
            positions=np.zeros(1, np.int64),
            window_rankings=np.zeros((1, 1), np.int64),
            window_clicks=np.zeros((1, 1), np.int8),
        )
    )
    GENERATOR = type_of(np.random.default_rng(0))
    _ITEMS, _CLICKS = types.int64[::1], types.int8[::1]
    _RANK = types.void(MEMORY, _ITEMS, GENERATOR, _ITEMS)
    _LEARN = types.void(MEMORY, _ITEMS, _CLICKS, types.float64)
    # As function values: code that takes them is compiled once, not once per bandit.
    _PROPENSITIES = types.void(MEMORY, _ITEMS, _ITEMS, types.float64[::1])
    RANK, LEARN, PROPENSITIES = map(types.FunctionType, (_RANK, _LEARN, _PROPENSITIES))
    _LOG = types.void(LEARN, MEMORY, types.int64[:, ::1], types.int8[:, ::1])


def rank_step(function: Callable[..., None]) -> Any:
    """Compile a bandit's rank."""
    return numba.njit(_RANK, cache=True, nogil=True)(function) if HAS_NUMBA else function


def learn_step(function: Callable[..., None]) -> Any:
    """Compile a bandit's learn."""
    return numba.njit(_LEARN, cache=True, nogil=True)(function) if HAS_NUMBA else function


def propensity_step(function: Callable[..., None]) -> Any:
    """Compile a bandit's propensities: ``(memory, available, ranking, propensities)`` fills the last."""
    return numba.njit(_PROPENSITIES, cache=True, nogil=True)(function) if HAS_NUMBA else function


def log_step(function: Callable[..., None]) -> Any:
    """Compile a function that calls a bandit's learn on many lists."""
    return numba.njit(_LOG, cache=True, nogil=True)(function) if HAS_NUMBA else function


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function that steps call."""
    return numba.njit(cache=True, nogil=True)(function) if HAS_NUMBA else function
