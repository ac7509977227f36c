"""Readable ticks on logarithmic axes: 0.2, 0.4, 1, 1,000 instead of powers of ten."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def use_readable_log_ticks(axis: Any) -> None:
    """Give a logarithmic axis ticks at round numbers, written as plain numbers, at most about ten. Call it when all lines are drawn."""
    from matplotlib.ticker import FixedLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(FixedLocator(round_numbers(low, high)))
    axis.set_major_formatter(lambda value, _: plain_number(value))
    axis.set_minor_formatter(NullFormatter())


def round_numbers(low: float, high: float) -> list[float]:
    """Round numbers between two positive ones, about evenly spaced on a logarithmic scale.

    >>> round_numbers(0.15, 1.1)
    [0.2, 0.4, 0.6, 0.8, 1.0]
    >>> round_numbers(1, 150)
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
    >>> round_numbers(0.82, 1.02)
    [0.85, 0.9, 0.95, 1.0]
    """
    decades = math.log10(high / low)
    if decades < 0.4:
        step = 10 ** math.floor(math.log10(high - low))
        step = next(step * factor for factor in (0.1, 0.2, 0.25, 0.5, 1, 2) if (high - low) / (step * factor) <= 6)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [float(f"{step * multiple:.6g}") for multiple in range(first, last + 1)]
    leading = (1, 2, 4, 6, 8) if decades < 1.3 else (1, 2, 5) if decades < 3 else (1,)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    every = max(1, math.ceil(decades / 8))
    numbers = [float(f"{digit}e{power}") for power in powers if power % every == 0 for digit in leading]
    return [number for number in numbers if low * (1 - 1e-9) <= number <= high * (1 + 1e-9)]


def plain_number(value: float) -> str:
    """A number without exponent, with thousands marked.

    >>> plain_number(0.00002), plain_number(0.6000000000000001), plain_number(10_000)
    ('0.00002', '0.6', '10,000')
    """
    rounded = float(f"{value:.6g}")
    if abs(rounded) >= 1000:
        return f"{rounded:,.0f}"
    return str(np.format_float_positional(rounded, trim="-"))
