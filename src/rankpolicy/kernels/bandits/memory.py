"""What a bandit's step functions work on, and the codes in it. Python and compiled code read the same; no compiler is needed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

CLICKS, OBSERVATIONS = 0, 1  # columns of statistics that count
NEVER_OBSERVED = 1e9  # index of an item that was never observed: above every other, so that it is shown next

# What one list of clicks reveals. Memory.feedback is a position in this tuple.
FEEDBACKS = ("all-clicks", "first-click", "last-click", "whole-list")
ALL_CLICKS, FIRST_CLICK, LAST_CLICK, WHOLE_LIST = range(4)


class Program(NamedTuple):
    """The two step functions of a bandit; step.py describes them."""

    rank: Callable[..., None]
    learn: Callable[..., None]


class Memory(NamedTuple):
    """All that a bandit knows, and the numbers it is set to."""

    steps: np.ndarray  # (1,) int64, number of lists learned from
    statistics: np.ndarray  # (table, item, column) float64, what has been learned
    settings: np.ndarray  # (setting,) float64, in the bandit's own order
    features: np.ndarray  # (item, feature) float64; no columns for bandits without features
    discount: float  # share of the statistics that each new list leaves; 1 forgets nothing
    feedback: int  # code of what a list of clicks reveals
    positions: np.ndarray  # (rank,) int64, where the k-th best item goes; empty: the best at the top
    window_rankings: np.ndarray  # (window, position) int64, lists that count, -1 past their end; no rows: all count
    window_clicks: np.ndarray  # (window, position) int8


class Table(NamedTuple):
    """Counts by key. The key of a (query, item) pair holds clicks and observations; the key of a query counts its lists in column 0."""

    keys: np.ndarray  # (slot,) uint64; 0 marks a free slot
    counts: np.ndarray  # (slot, 2) uint32
