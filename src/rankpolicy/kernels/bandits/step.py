"""What every bandit's compiled steps look like, so that one compiled loop and one Python face drive them all.

A bandit is two functions over plain arrays:

    rank(memory, available, generator, ranking)   fills ranking with the first items of a list of ``available`` ones, best first
    learn(memory, ranking, clicks, weight)        adds weight times what the clicks on a shown list say to memory.statistics

``ranking`` is never longer than ``available``. ``weight`` is 1; an additive bandit is also called with -1 to forget a list that has left
the window. Counting steps, discounts and windows are not theirs: see kernels/bandit_loop.py. ``generator`` is a numpy Generator, which
draws the same numbers in compiled code and outside it. Where numba is missing the same functions run as plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankpolicy.kernels import has_numba
from rankpolicy.kernels.bandits.memory import Memory

if has_numba():
    import numba
    from numba import types

    _MEMORY = numba.typeof(
        Memory(
            np.zeros(1, np.int64),
            np.zeros((1, 1, 1)),
            np.zeros(1),
            np.zeros((1, 1)),
            1.0,
            np.zeros((1, 1), np.int64),
            np.zeros((1, 1), np.int8),
        )
    )
    _GENERATOR = numba.typeof(np.random.default_rng(0))
    _ITEMS, _CLICKS = types.int64[::1], types.int8[::1]
    _RANK = types.void(_MEMORY, _ITEMS, _GENERATOR, _ITEMS)
    _LEARN = types.void(_MEMORY, _ITEMS, _CLICKS, types.float64)
    # Function values: what takes them is compiled once, not once a bandit.
    RANK, LEARN, MEMORY, GENERATOR = types.FunctionType(_RANK), types.FunctionType(_LEARN), _MEMORY, _GENERATOR
    LOG = types.void(LEARN, _MEMORY, types.int64[:, ::1], types.int8[:, ::1])


def rank_step(function: Callable[..., None]) -> Any:
    """Compile a bandit's rank."""
    return numba.njit(_RANK, cache=True, nogil=True)(function) if has_numba() else function


def learn_step(function: Callable[..., None]) -> Any:
    """Compile a bandit's learn."""
    return numba.njit(_LEARN, cache=True, nogil=True)(function) if has_numba() else function


def log_step(function: Callable[..., None]) -> Any:
    """Compile what calls a bandit's learn on many lists."""
    return numba.njit(LOG, cache=True, nogil=True)(function) if has_numba() else function


def compiled(function: Callable[..., Any]) -> Any:
    """Compile what these share."""
    return numba.njit(cache=True, nogil=True)(function) if has_numba() else function
