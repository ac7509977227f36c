"""L-BFGS with a strong Wolfe line search (Nocedal & Wright 2006, algorithms 7.4, 3.5 and 3.6), which asks for values and waits for them.

Several searches can thus go on at once, and what they ask for be computed together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
# Yields points and is sent the function and its gradient there.
Search = Generator[Vector, tuple[float, Vector], Vector]

_HISTORY = 20
_LEAST_GRADIENT, _LEAST_CHANGE = 1e-9, 1e-12
_DECREASE, _CURVATURE = 1e-4, 0.9  # of the Wolfe conditions
_MOST_TRIALS = 25  # of a line search
_EVALUATIONS_PER_ITERATION = 1.25


class _Trial(NamedTuple):
    """A point of a line search."""

    step: float
    value: float
    gradient: Vector
    slope: float


def lbfgs(start: Vector, *, max_iterations: int) -> Search:
    """Minimise a function from a starting point; returns the best point found."""
    x, (value, gradient) = start, (yield start)
    pairs: deque[tuple[Vector, Vector, float]] = deque(maxlen=_HISTORY)
    evaluations, most = 1, int(max_iterations * _EVALUATIONS_PER_ITERATION)
    for iteration in range(max_iterations):
        if np.abs(gradient).max(initial=0.0) <= _LEAST_GRADIENT or (iteration and evaluations >= most):
            break
        direction = _direction(gradient, pairs)
        slope = float(gradient @ direction)
        if slope > -_LEAST_CHANGE:
            break
        step = min(1.0, 1.0 / float(np.abs(gradient).sum())) if iteration == 0 else 1.0
        origin = _Trial(0.0, value, gradient, slope)
        best, trials = yield from _line_search(x, direction, origin, step)
        evaluations += trials
        moved = best.step * direction
        change, before = best.gradient - gradient, value
        curvature = float(change @ moved)
        if curvature > 1e-10:
            pairs.append((moved, change, curvature))
        x, value, gradient = x + moved, best.value, best.gradient
        if np.abs(moved).max(initial=0.0) <= _LEAST_CHANGE or abs(value - before) < _LEAST_CHANGE:
            break
    return x


def _direction(gradient: Vector, pairs: deque[tuple[Vector, Vector, float]]) -> Vector:
    """Minus the approximate inverse Hessian times the gradient, by the two loops over the last steps."""
    direction = -gradient
    shares = []
    for moved, change, curvature in reversed(pairs):
        shares.append(float(moved @ direction) / curvature)
        direction = direction - shares[-1] * change
    if pairs:
        _, change, curvature = pairs[-1]
        direction = direction * (curvature / float(change @ change))
    for (moved, change, curvature), share in zip(pairs, reversed(shares), strict=True):
        direction = direction + moved * (share - float(change @ direction) / curvature)
    return direction


def _line_search(
    x: Vector, direction: Vector, origin: _Trial, step: float
) -> Generator[Vector, tuple[float, Vector], tuple[_Trial, int]]:
    """A step that meets the strong Wolfe conditions, or the best of those tried; and how many were."""
    before = origin
    for trial in range(_MOST_TRIALS):
        now = _at(step, direction, (yield x + step * direction))
        too_high = now.value > origin.value + _DECREASE * step * origin.slope or (trial and now.value >= before.value)
        if too_high or now.slope >= 0:
            if not too_high and abs(now.slope) <= -_CURVATURE * origin.slope:
                return now, trial + 1
            low, high = (before, now) if too_high else (now, before)
            best, trials = yield from _zoom(x, direction, origin, low, high, _MOST_TRIALS - trial - 1)
            return best, trial + 1 + trials
        if abs(now.slope) <= -_CURVATURE * origin.slope:
            return now, trial + 1
        # At least twice as long: where the slope hardly changes, rounding decides where the cubic has its minimum.
        step, before = float(np.clip(_cubic_minimum(before, now), 2 * step, 10 * step)), now
    return before, _MOST_TRIALS


def _zoom(
    x: Vector, direction: Vector, origin: _Trial, low: _Trial, high: _Trial, most: int
) -> Generator[Vector, tuple[float, Vector], tuple[_Trial, int]]:
    """A step between two of which the first is the better one, and between which a good one must lie."""
    for trial in range(most):
        lower, upper = sorted((low.step, high.step))
        if (upper - lower) * float(np.abs(direction).max()) < _LEAST_CHANGE:
            return low, trial
        # Off the ends, so that the interval shrinks.
        margin = 0.1 * (upper - lower)
        step = float(np.clip(_cubic_minimum(low, high), lower + margin, upper - margin))
        now = _at(step, direction, (yield x + step * direction))
        if now.value > origin.value + _DECREASE * step * origin.slope or now.value >= low.value:
            high = now
            continue
        if abs(now.slope) <= -_CURVATURE * origin.slope:
            return now, trial + 1
        if now.slope * (high.step - low.step) >= 0:
            high = low
        low = now
    return low, most


def _at(step: float, direction: Vector, value_and_gradient: tuple[float, Vector]) -> _Trial:
    value, gradient = value_and_gradient
    return _Trial(step, value, gradient, float(gradient @ direction))


def _cubic_minimum(first: _Trial, second: _Trial) -> float:
    """Where the cubic through two values and slopes is lowest; the middle where it has no minimum.

    >>> from numpy import zeros
    >>> _cubic_minimum(_Trial(0.0, 1.0, zeros(1), -2.0), _Trial(2.0, 1.0, zeros(1), 2.0))
    1.0
    """
    a, b = (first, second) if first.step <= second.step else (second, first)
    width = b.step - a.step
    if width == 0:
        return a.step
    bend = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
    under_root = bend * bend - a.slope * b.slope
    if not under_root >= 0:
        return (a.step + b.step) / 2
    root = float(np.sqrt(under_root))
    divisor = b.slope - a.slope + 2 * root
    return b.step - width * (b.slope + root - bend) / divisor if divisor else (a.step + b.step) / 2
