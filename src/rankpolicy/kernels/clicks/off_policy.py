"""Plackett-Luce probabilities of logged lists; the reference is off_policy/targets.py."""

import math
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit

Floats = NDArray[np.float64]

_TOO_SMALL = 1e-250  # weights this small relative to the largest have lost digits, or are about to
_LITTLE = 1e-3  # a difference of this share of the minuend has lost three of sixteen digits
_NUM_BLOCKS = 64


def plackett_luce_products(
    scores: Floats, mask: NDArray[np.bool_], contexts: NDArray[np.int64], items: NDArray[np.int32], divisors: Floats
) -> Floats:
    """Running products of P(item | items above it) / divisor (round, position); a position where none was shown changes nothing."""
    products = np.empty(items.shape)
    log_weights, weights = _weights(scores, mask)
    arguments: tuple[Any, ...] = weights, log_weights, weights.sum(1), contexts, items, divisors, products
    _products_in_blocks(*arguments, num_tasks=_NUM_BLOCKS, nanoseconds=20 * items.size)
    return products


def plackett_luce_expected_next(
    scores: Floats,
    mask: NDArray[np.bool_],
    values: Floats,
    contexts: NDArray[np.int64],
    items: NDArray[np.int32],
    position: int,
) -> Floats:
    """Mean of values (context, item) over the next item of each round (round,); 0 where no item is left."""
    expected = np.empty(len(items))
    log_weights, weights = _weights(scores, mask)
    arguments: tuple[Any, ...] = weights, log_weights, values, contexts, items, position, expected
    _expected_next_in_blocks(*arguments, num_tasks=_NUM_BLOCKS, nanoseconds=20 * len(items) * scores.shape[1])
    return expected


def _weights(scores: Floats, mask: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Scores with -inf for padded items, and exp(score - largest of the context), both (context, item)."""
    log_weights = np.where(mask, scores, -np.inf)
    largest = np.where(mask.any(1), log_weights.max(1), 0.0)
    return log_weights, np.exp(log_weights - largest[:, None])


@njit()
def _products(weights, log_weights, totals, contexts, items, divisors, products, first, last):
    num_positions = items.shape[1]
    for round_ in range(first, last):
        context_weights, total = weights[contexts[round_]], totals[contexts[round_]]
        length, placed = 0, 0.0
        while length < num_positions and items[round_, length] >= 0:
            placed += context_weights[items[round_, length]]
            length += 1
        # Subtraction is fast but loses digits where little is left; adding up from the end of the list loses none.
        remaining = total - placed
        if remaining < _LITTLE * total:
            remaining = _unplaced(context_weights, items[round_, :length])
        for position in range(length - 1, -1, -1):
            weight = context_weights[items[round_, position]]
            remaining += weight
            if weight > _TOO_SMALL:
                products[round_, position] = weight / (remaining * divisors[round_, position])
            else:
                step = _step_in_logs(log_weights[contexts[round_]], items[round_], position)
                products[round_, position] = step / divisors[round_, position]
        product = 1.0
        for position in range(num_positions):
            if position < length:
                product *= products[round_, position]
            products[round_, position] = product


@njit(parallel=True)
def _products_in_blocks(weights, log_weights, totals, contexts, items, divisors, products):
    n = len(items)
    for block in prange(_NUM_BLOCKS):
        first, last = n * block // _NUM_BLOCKS, n * (block + 1) // _NUM_BLOCKS
        _products(weights, log_weights, totals, contexts, items, divisors, products, first, last)


# Terms may be added in any order, so that the processor adds several at a time.
@njit(fastmath={"reassoc"})
def _sum(values):
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total


@njit(fastmath={"reassoc"})
def _dot(weights, values):
    total = 0.0
    for i in range(len(weights)):
        total += weights[i] * values[i]
    return total


@njit()
def _unplaced(weights, placed):
    remaining = weights.copy()
    for item in placed:
        remaining[item] = 0.0
    return _sum(remaining)


@njit()
def _step_in_logs(log_weights, items, position):
    remaining = log_weights.copy()
    for above in range(position):
        remaining[items[above]] = -np.inf
    largest = remaining.max()
    return math.exp(remaining[items[position]] - largest) / np.exp(remaining - largest).sum()


@njit()
def _expected_next(weights, log_weights, values, contexts, items, position, expected, first, last):
    remaining = np.empty(weights.shape[1])
    for round_ in range(first, last):
        context = contexts[round_]
        remaining[:] = weights[context]
        for above in range(position):
            if items[round_, above] >= 0:
                remaining[items[round_, above]] = 0.0
        if _sum(remaining) < _TOO_SMALL:
            remaining[:] = log_weights[context]
            for above in range(position):
                if items[round_, above] >= 0:
                    remaining[items[round_, above]] = -np.inf
            largest = remaining.max()
            for item in range(len(remaining)):
                remaining[item] = 0.0 if remaining[item] == -np.inf else math.exp(remaining[item] - largest)
        total = _sum(remaining)
        expected[round_] = _dot(remaining, values[context]) / total if total > 0 else 0.0


@njit(parallel=True)
def _expected_next_in_blocks(weights, log_weights, values, contexts, items, position, expected):
    n = len(items)
    for block in prange(_NUM_BLOCKS):
        first, last = n * block // _NUM_BLOCKS, n * (block + 1) // _NUM_BLOCKS
        _expected_next(weights, log_weights, values, contexts, items, position, expected, first, last)
