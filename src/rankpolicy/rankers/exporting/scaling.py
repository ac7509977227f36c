"""Feature scaling in an ONNX graph: the same numbers as ``FeatureScaling.apply``, whose steps these are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.encoding import FeatureEncoding
from rankpolicy.data.scaling import SCALINGS, FeatureScaling, minmax_by_query, symmetric_log, unchanged
from rankpolicy.rankers.exporting.graph import Graph

_ZERO, _ONE = np.float32(0), np.float32(1)


def add_scaling(graph: Graph, scaling: FeatureScaling) -> str:
    """Scaled features (row, scaled feature), float32."""
    features, missing = graph.features, graph.add("IsNaN", graph.features)
    if scaling.encoding is not None:
        filled = _filled(graph, scaling.encoding, missing)
    else:
        middle = _ZERO if scaling.knots is None else scaling.knots[:, scaling.knots.shape[1] // 2]
        filled = graph.add("Where", missing, middle, features)
    scaled = _TRANSFORMS[SCALINGS[scaling.kind].transform](graph, filled)
    if scaling.knots is not None:
        scaled = graph.add("Concat", scaled, _quantiles(graph, scaled, scaling.knots), axis=1)
    if scaling.center is not None and scaling.spread is not None:
        scaled = graph.add("Div", graph.add("Sub", scaled, scaling.center), scaling.spread)
    _note_edges(graph, scaling)
    if scaling.encoding is not None:
        return graph.add("Concat", scaled, *_extra(graph, scaling.encoding, missing), axis=1)
    return scaled if scaling.knots is not None else graph.add("Where", missing, _ZERO, scaled)


def _filled(graph: Graph, encoding: FeatureEncoding, missing: str) -> str:
    """Features without missing values; categorical columns are 0."""
    filled = graph.add("Where", missing, encoding.fill, graph.features)
    return graph.add("Where", encoding.num_categories > 0, _ZERO, filled)


def _extra(graph: Graph, encoding: FeatureEncoding, missing: str) -> list[str]:
    """Indicators of missing values, then one column of 0 and 1 per category."""
    marked = np.flatnonzero(encoding.indicators)
    extra = [graph.cast(graph.columns(missing, marked), np.float32)] if len(marked) else []
    for column in np.flatnonzero(encoding.num_categories):
        codes = np.arange(encoding.num_categories[column], dtype=np.float32)
        is_code = graph.add("Equal", graph.columns(graph.features, np.array([column])), codes[None])
        extra.append(graph.cast(is_code, np.float32))
    return extra


def _quantiles(graph: Graph, values: str, knots: NDArray[np.float32]) -> str:
    """The quantile of each value among the knots of its column: ``with_quantiles``, by bisection in all columns at once."""
    num_features, num_knots = knots.shape
    # Powers of two that add up to any place among the knots; what is past the last knot is infinite.
    steps = [1 << power for power in reversed(range(num_knots.bit_length()))]
    room = 2 * steps[0]
    filled = np.full((num_features, room), np.inf, np.float32)
    filled[:, :num_knots] = knots
    ties = np.zeros((num_features, room))
    for knots_of_feature, row in zip(knots, ties, strict=True):
        row[:num_knots] = (
            np.searchsorted(knots_of_feature, knots_of_feature, side="left")
            + np.searchsorted(knots_of_feature, knots_of_feature, side="right")
            - 1
        ) / 2
    table, starts = graph.constant(filled.ravel()), np.arange(num_features, dtype=np.int32) * np.int32(room)
    values = graph.add("Max", graph.add("Min", values, knots[:, -1]), knots[:, 0])
    position = graph.add("Mul", graph.cast(graph.add("IsNaN", values), np.int32), np.int32(0))  # zeros
    position = graph.add("Add", position, starts)
    for step in steps:
        probed = graph.add("Gather", table, graph.add("Add", position, np.int32(step - 1)))
        is_below = graph.cast(graph.add("Less", probed, values), np.int32)
        position = graph.add("Add", position, graph.add("Mul", is_below, np.int32(step)))
    above = graph.add("Gather", table, position)
    below = graph.add("Gather", table, graph.add("Max", graph.add("Sub", position, np.int32(1)), starts))
    gap = graph.add("Sub", above, below)
    gap = graph.add("Where", graph.add("Greater", gap, _ZERO), gap, _ONE)
    share = graph.cast(graph.add("Div", graph.add("Sub", values, below), gap), np.float64)
    steps_below = graph.cast(graph.add("Sub", position, starts + np.int32(1)), np.float64)
    between = graph.add("Add", steps_below, share)
    tied = graph.add("Gather", graph.constant(ties.ravel()), position)
    place_of_value = graph.add("Where", graph.add("Equal", above, values), tied, between)
    return graph.cast(graph.add("Div", place_of_value, np.float64(max(num_knots - 1, 1))), np.float32)


def _unchanged(graph: Graph, features: str) -> str:
    return features


def _symmetric_log(graph: Graph, features: str) -> str:
    # There is no log1p in ONNX; in float64, log(1 + x) is as exact for every float32 that matters.
    sizes = graph.cast(graph.add("Abs", features), np.float64)
    logs = graph.cast(graph.add("Log", graph.add("Add", sizes, np.float64(1))), np.float32)
    return graph.add("Mul", graph.add("Sign", features), logs)


def _minmax_by_query(graph: Graph, features: str) -> str:
    query = graph.query()
    num_queries = graph.add("Add", graph.add("ReduceMax", query, keepdims=1), np.int64(1))
    shape = graph.add("Concat", num_queries, np.array([graph.num_features]), axis=0)
    rows = graph.add("Expand", graph.add("Unsqueeze", query, np.array([1])), graph.add("Shape", features))

    def of_query(reduction: str, start: float) -> str:
        first = graph.add("Expand", np.float32(start), shape)
        reduced = graph.add("ScatterElements", first, rows, features, axis=0, reduction=reduction)
        return graph.add("Gather", reduced, query, axis=0)

    lowest = of_query("min", np.inf)
    spread = graph.add("Sub", of_query("max", -np.inf), lowest)
    spread = graph.add("Where", graph.add("Equal", spread, _ZERO), _ONE, spread)
    return graph.add("Div", graph.add("Sub", features, lowest), spread)


_TRANSFORMS: dict[Callable[..., Any], Callable[[Graph, str], str]] = {
    unchanged: _unchanged,
    symmetric_log: _symmetric_log,
    minmax_by_query: _minmax_by_query,
}


def _note_edges(graph: Graph, scaling: FeatureScaling) -> None:
    for feature in range(graph.num_features):
        if scaling.knots is not None:
            graph.edges[feature].append(scaling.knots[feature])
        elif scaling.center is not None and scaling.spread is not None:
            center, spread = scaling.center[feature], scaling.spread[feature]
            around = center + np.linspace(-3, 3, 31) * (spread if np.isfinite(spread) else 1)
            if scaling.kind == "log1p":
                with np.errstate(over="ignore"):
                    around = np.sign(around) * np.expm1(np.abs(around))
            graph.edges[feature].append(around)
