"""The E step of cascade models below the last click: one pass up and one down each list for all its sessions; one thread per query.

The specification is clicks/models/cascade.py.

The E step of PBM and UBM over counted marks, one thread per block of pairs; the specification is clicks/models/examination.py.

Weighted counts of codes for many weightings of the same rows; the specification is clicks/log/log_pairs.py.
"""

import math

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit


def examine_lists(
    pairs: NDArray[np.int64],
    lengths: NDArray[np.int64],
    last_clicks: NDArray[np.float64],
    last_starts: NDArray[np.int64],
    blocks: NDArray[np.int64],
    attraction: NDArray[np.float64],
    after_click: NDArray[np.float64],
    after_skip: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, float, float]:
    """Below the last clicks: how often each pair was examined, P(went on | last click here) (last,), how many items were skipped, how
    often the user went on from there, and the log-likelihood.

    Arrays are those of clicks/log/list_counts.py; ``after_click`` (last,) is for the last clicks only.
    """
    examined, went_on, sums = np.zeros(len(attraction)), np.empty(len(after_click)), np.zeros((len(blocks) - 1, 3))
    inputs = (pairs, lengths, last_clicks, last_starts, attraction, after_click, after_skip)
    _lists_of_blocks(blocks, inputs, examined, went_on, sums, num_tasks=len(sums), nanoseconds=10 * pairs.size)
    skips, gone_on, log_likelihood = sums.sum(0).tolist()
    return examined, went_on, skips, gone_on, log_likelihood


@njit(parallel=True)
def _lists_of_blocks(blocks, inputs, examined, went_on, sums):
    for block in prange(len(blocks) - 1):
        _of_lists(range(blocks[block], blocks[block + 1]), inputs, examined, went_on, sums[block])


@njit()
def _of_lists(lists, inputs, examined, went_on, sums):
    pairs, lengths, last_clicks, last_starts, attraction, after_click, after_skip = inputs
    later = np.ones(pairs.shape[1] + 1)  # P(no click from here on | examined)
    skips, gone_on, log_likelihood = 0.0, 0.0, 0.0
    for row in lists:
        length, entry = lengths[row], last_starts[row]
        later[length] = 1.0
        for k in range(length - 1, -1, -1):
            later[k] = (1.0 - attraction[pairs[row, k]]) * (1.0 - after_skip + after_skip * later[k + 1])
        # Expected number of sessions that examined this position and have their last click above.
        looking = last_clicks[row, 0]
        if looking > 0.0:
            log_likelihood += looking * math.log(later[0])
        for k in range(length):
            examined[pairs[row, k]] += looking
            if k + 1 == length:
                break
            skips += looking
            on = after_skip * later[k + 1]
            none = on + (1.0 - after_skip)
            looking *= on / none if none != 0.0 else 0.0
            gone_on += looking
            count = last_clicks[row, k + 1]
            if count > 0.0:
                on = after_click[entry] * later[k + 1]
                none = on + (1.0 - after_click[entry])  # so that x cannot pass 1
                x = on / none if none != 0.0 else 0.0
                went_on[entry] = x
                entry += 1
                looking += count * x
                log_likelihood += count * math.log(none)
    sums[0] += skips
    sums[1] += gone_on
    sums[2] += log_likelihood


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
    inputs, sums = (pairs, slots, clicked, counts, attraction, examination), (clicks, examined, by_slot, shown)
    _cells_of_blocks(blocks, inputs, sums, log_likelihoods, num_tasks=num_blocks, nanoseconds=10 * len(pairs))
    return clicks, examined, by_slot.sum(0), shown.sum(0), float(log_likelihoods.sum())


@njit(parallel=True)
def _cells_of_blocks(blocks, inputs, sums, log_likelihoods):
    clicks, examined, by_slot, shown = sums
    for block in prange(len(blocks) - 1):
        sums_of_block = (clicks, examined, by_slot[block], shown[block])
        log_likelihoods[block] = _of_cells(range(blocks[block], blocks[block + 1]), inputs, sums_of_block)


@njit()
def _of_cells(cells, inputs, sums):
    pairs, slots, clicked, counts, attraction, examination = inputs
    clicks, examined, by_slot, shown = sums
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
