"""What a bandit's step functions work on; apart from them, as it needs no compiler."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Memory(NamedTuple):
    """All that a bandit knows and is set to."""

    steps: np.ndarray  # (1,) int64, lists learned from
    statistics: np.ndarray  # (table, item, column) float64, what has been learned
    settings: np.ndarray  # (setting,) float64, in the bandit's own order
    features: np.ndarray  # (item, feature) float64, no columns where the bandit does not use any
    discount: float  # what each new list leaves of the statistics; 1: nothing is forgotten
    window_rankings: (
        np.ndarray
    )  # (window, position) int64, the lists that count, -1 past their end; no rows: all lists count
    window_clicks: np.ndarray  # (window, position) int8
