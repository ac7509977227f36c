"""How numbers are written on the pages of the dashboard."""

from __future__ import annotations

import math
import time

NOTHING = "–"
_SMALLEST = 1e-9  # that a chart shows


def share(value: float | None) -> str:
    """A share in percent.

    >>> share(0.12345), share(1.0), share(0.0004), share(None)
    ('12.3 %', '100 %', '0.04 %', '–')
    """
    if value is None:
        return NOTHING
    percent = 100 * value
    if percent in (0, 100):
        return f"{percent:.0f} %"
    return f"{percent:.1f} %" if abs(percent) >= 0.1 else f"{percent:.2g} %"


def gain(value: float) -> str:
    """A relative difference.

    >>> gain(0.723), gain(-0.051), gain(2.5)
    ('+72 %', '−5.1 %', '+250 %')
    """
    percent = abs(100 * value)
    return f"{'−' if value < 0 else '+'}{percent:.{1 if percent < 10 else 0}f} %"


def short(value: float | None) -> str:
    """A number in about three digits.

    >>> short(1234567), short(12.345), short(0.01234), short(0), short(None)
    ('1,234,567', '12.3', '0.0123', '0', '–')
    """
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}".rstrip("0").rstrip(".")


def ago(seconds: float) -> str:
    """How long ago something was.

    >>> ago(0), ago(42), ago(600), ago(7200), ago(200_000)
    ('now', '42 s ago', '10 min ago', '2 h ago', '2.3 d ago')
    """
    if seconds < 1:
        return "now"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size or (seconds >= size and unit != "min"):
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit} ago"
    return f"{seconds:.0f} s ago"


def moment(stamp_us: int | float | None) -> str:
    """A time of the service, in UTC.

    >>> moment(0)
    '1970-01-01 00:00:00 UTC'
    """
    if stamp_us is None:
        return NOTHING
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(stamp_us / 1e6))
    except (ValueError, OverflowError, OSError):
        return NOTHING


def thousands(value: int) -> str:
    """A count with its thousands marked."""
    return f"{value:,}"


def milliseconds(value: float | None) -> str:
    """A time in milliseconds; None where there is none."""
    return NOTHING if value is None else f"{short(value)} ms"


def nice_ticks(largest: float, *, number: int = 4) -> list[float]:
    """Round values from 0 to at least the largest one.

    >>> nice_ticks(0.83)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> nice_ticks(37)
    [0.0, 10.0, 20.0, 30.0, 40.0]
    """
    largest = largest if largest > _SMALLEST and math.isfinite(largest) else 1.0
    rough = largest / number
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * size for factor in (1, 2, 2.5, 5, 10) if factor * size >= rough * 0.999)
    count = math.ceil(largest / step - 1e-9)
    return [round(multiple * step, 12) for multiple in range(count + 1)]


# Names that templates know, as filters and as arguments of chart macros.
FILTERS = {
    "ago": ago,
    "gain": gain,
    "milliseconds": milliseconds,
    "moment": moment,
    "share": share,
    "short": short,
    "thousands": thousands,
}
