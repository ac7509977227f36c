"""Features with their quantiles, standardised, in one pass; data/scaling.py is the readable specification.

Of up to 256 knots and the last, the place of a value is found by two comparisons of 16 knots at once: with the last of every 16, then with
the 16 among which it lies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba.extending
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import prange, types
from numpy.typing import NDArray

from rankpolicy.kernels.compile import njit

Floats = NDArray[np.float32]

MOST_KNOTS = 257
_WIDTH = 16
_ROOM = MOST_KNOTS + _WIDTH - 1  # of the knots of a feature, filled up with infinity
_BLOCK_ITEMS = 32

intrinsic: Any = numba.extending.intrinsic  # its functions are called without the typing context that they declare


class QuantileTable(NamedTuple):
    """Knots in the form that the kernel searches; made by ``quantile_table``."""

    knots: Floats  # (features * _ROOM,)
    every_16th: Floats  # (features * 16,)
    ties: NDArray[np.uint16]  # (features * _ROOM,) the first plus the last of the knots that are equal to this one
    num_steps: int  # from the first knot to the last


def quantile_table(knots: Floats) -> QuantileTable:
    """The table of knots (features, knots), ascending, at most MOST_KNOTS of them."""
    num_features, num_knots = knots.shape
    num_steps = max(num_knots - 1, 1)
    filled, ties = np.full((num_features, _ROOM), np.inf, np.float32), np.zeros((num_features, _ROOM), np.uint16)
    filled[:, :num_knots] = knots
    for feature, of_feature in enumerate(knots):
        first, past = (
            np.searchsorted(of_feature, of_feature, side="left"),
            np.searchsorted(of_feature, of_feature, side="right"),
        )
        ties[feature, :num_knots] = first + past - 1
    every_16th = np.ascontiguousarray(filled[:, _WIDTH - 1 : MOST_KNOTS - 1 : _WIDTH])
    return QuantileTable(filled.ravel(), every_16th.ravel(), ties.ravel(), num_steps)


def scaled_with_quantiles(features: Floats, table: QuantileTable, center: Floats, spread: Floats) -> Floats:
    """Standardised features followed by their standardised quantiles (items, 2 * features)."""
    num_items, num_features = features.shape
    scaled = np.empty((num_items, 2 * num_features), np.float32)
    num_blocks = (num_items + _BLOCK_ITEMS - 1) // _BLOCK_ITEMS
    _scale(features, table, center, spread, scaled, num_tasks=num_blocks, nanoseconds=5 * features.size)
    return scaled


@njit(parallel=True, nogil=True)
def _scale(features, table, center, spread, scaled):
    for block in prange((len(features) + _BLOCK_ITEMS - 1) // _BLOCK_ITEMS):
        first = block * _BLOCK_ITEMS
        _scale_block(first, min(first + _BLOCK_ITEMS, len(features)), features, table, center, spread, scaled)


@njit(nogil=True)
def _scale_block(first, last, features, table, center, spread, scaled):
    num_items, num_features = last - first, features.shape[1]
    knots, every_16th, ties, num_steps = table
    values, below, above = (
        np.empty(num_items, np.float32),
        np.empty(num_items, np.float32),
        np.empty(num_items, np.float32),
    )
    tied, steps_below = np.empty(num_items, np.float64), np.empty(num_items, np.float64)
    for feature in range(num_features):
        start, start_16th = feature * _ROOM, feature * _WIDTH
        lowest, highest = knots[start], knots[start + num_steps]
        for i in range(num_items):
            value = features[first + i, feature]
            value = lowest if value < lowest else value
            value = highest if value > highest else value
            group = _count_below(every_16th, start_16th, value)
            knot = group * _WIDTH + _count_below(knots, start + group * _WIDTH, value)
            values[i] = value
            steps_below[i] = knot - 1
            above[i] = knots[start + knot]
            below[i] = knots[start + knot - (knot > 0)]
            # The middle of the knots that the value may equal.
            tied[i] = 0.5 * ties[start + knot]
        own_center, own_spread = center[feature], spread[feature]
        quantile_center, quantile_spread = center[num_features + feature], spread[num_features + feature]
        for i in range(num_items):
            gap = above[i] - below[i]
            share = (values[i] - below[i]) / (gap if gap > 0 else np.float32(1))
            steps = tied[i] if above[i] == values[i] else steps_below[i] + share
            quantile = np.float32(steps / num_steps)
            values[i] = (quantile - quantile_center) / quantile_spread
        for i in range(num_items):
            scaled[first + i, feature] = (features[first + i, feature] - own_center) / own_spread
            scaled[first + i, num_features + feature] = values[i]


@intrinsic
def _count_below(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """How many of array[index : index + 16], a flat array, are less than the value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = ir.VectorType(ir.FloatType(), _WIDTH)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[2], ir.IntType(32)(0))
        spread = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), _WIDTH), [0] * _WIDTH))
        is_below = builder.fcmp_ordered("<", builder.load(pointer, align=4), spread)
        return builder.zext(builder.ctpop(builder.bitcast(is_below, ir.IntType(_WIDTH))), ir.IntType(64))

    return types.intp(array, types.intp, types.float32), generate
