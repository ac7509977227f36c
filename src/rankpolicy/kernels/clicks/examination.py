"""The E step of PBM and UBM over counted marks, one thread per block of pairs; the specification is clicks/models/examination.py."""

import math

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit


def examination_counts(
    pairs: NDArray[np.int64],
    slots: NDArray[np.int64],
    clicked: NDArray[np.bool_],
    counts: NDArray[np.float64],
    blocks: NDArray[np.int64],
    attraction: NDArray[np.float64],
    examination: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Clicks and examinations by pair, examinations and impressions by slot, and the log-likelihood of the marks."""
    num_blocks = len(blocks) - 1
    clicks, examined = np.zeros(len(attraction)), np.zeros(len(attraction))
    by_slot, shown = np.zeros((num_blocks, len(examination))), np.zeros((num_blocks, len(examination)))
    log_likelihoods = np.zeros(num_blocks)
    arguments = (pairs, slots, clicked, counts, blocks, attraction, examination)
    _of_blocks(
        *arguments, clicks, examined, by_slot, shown, log_likelihoods, num_tasks=num_blocks, nanoseconds=10 * len(pairs)
    )
    return clicks, examined, by_slot.sum(0), shown.sum(0), float(log_likelihoods.sum())


@njit(parallel=True)
def _of_blocks(
    pairs, slots, clicked, counts, blocks, attraction, examination, clicks, examined, by_slot, shown, log_likelihoods
):
    for block in prange(len(blocks) - 1):
        log_likelihoods[block] = _of_cells(
            range(blocks[block], blocks[block + 1]), pairs, slots, clicked, counts, attraction, examination, clicks, examined,
            by_slot[block], shown[block],
        )  # fmt: skip


@njit()
def _of_cells(cells, pairs, slots, clicked, counts, attraction, examination, clicks, examined, by_slot, shown):
    log_likelihood = 0.0
    for cell in cells:
        pair, slot, count = pairs[cell], slots[cell], counts[cell]
        a, e = attraction[pair], examination[slot]
        shown[slot] += count
        if clicked[cell]:
            clicks[pair] += count
            examined[pair] += count
            by_slot[slot] += count
            log_likelihood += count * math.log(e * a)
        else:
            miss = 1.0 - e * a
            still_examined = count * e * (1.0 - a) / miss if miss != 0.0 else 0.0
            examined[pair] += still_examined
            by_slot[slot] += still_examined
            log_likelihood += count * math.log(miss)
    return log_likelihood
