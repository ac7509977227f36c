"""Weighted counts of codes for many weightings of the same rows; clicks/counts_by_pair.py is the specification."""

import numba
import numpy as np


def weighted_counts_of_rows(codes, rows, weights, size):
    """(resample, size) sums of weights[resample, rows[e]] over the entries e of each code."""
    totals = np.zeros((len(weights), size))
    _add(codes, rows, weights, totals)
    return totals


@numba.njit(cache=True, parallel=True)
def _add(codes, rows, weights, totals):
    for resample in numba.prange(len(weights)):
        for entry in range(len(codes)):
            totals[resample, codes[entry]] += weights[resample, rows[entry]]
