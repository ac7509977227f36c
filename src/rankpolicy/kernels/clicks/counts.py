"""Weighted counts of codes for many weightings of the same rows; the specification is clicks/log/log_pairs.py."""

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit


def weighted_counts_of_rows(
    codes: NDArray[np.int32], rows: NDArray[np.int32], weights: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Sums of weights[resample, rows[e]] over the entries e of each code (resample, size)."""
    totals = np.zeros((len(weights), size))
    _add(codes, rows, weights, totals, num_tasks=len(weights), nanoseconds=2 * len(codes) * len(weights))
    return totals


@njit(parallel=True)
def _add(codes, rows, weights, totals):
    for resample in prange(len(weights)):
        for entry in range(len(codes)):
            totals[resample, codes[entry]] += weights[resample, rows[entry]]
