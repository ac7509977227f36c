"""Intervals of shares and of ratios of shares."""

from __future__ import annotations

import math

Z = 1.959964  # 95 %
_MEAN_WEIGHT_ERROR, _STANDARD_ERRORS = 0.2, 2.0


def share_with_interval(successes: int, trials: int) -> dict[str, float | None]:
    """A share with its 95 % Wilson interval; None for no trials.

    >>> found = share_with_interval(5, 10)
    >>> found["rate"], round(found["low"], 3), round(found["high"], 3)
    (0.5, 0.237, 0.763)
    """
    if not trials:
        return {"rate": None, "low": None, "high": None}
    share = successes / trials
    widening = Z * Z / trials
    centre = (share + widening / 2) / (1 + widening)
    half = Z * math.sqrt(share * (1 - share) / trials + widening / trials / 4) / (1 + widening)
    return {"rate": share, "low": max(0.0, centre - half), "high": min(1.0, centre + half)}


def ratio_with_interval(
    successes: int, trials: int, base_successes: int, base_trials: int
) -> dict[str, float | None] | None:
    """A share divided by another with a 95 % interval, normal on the scale of logarithms; None where one of them is 0.

    >>> found = ratio_with_interval(50, 100, 100, 100)
    >>> found["rate"], round(found["low"], 3), round(found["high"], 3)
    (0.5, 0.411, 0.608)
    """
    if not (successes and base_successes):
        return None
    share, base = successes / trials, base_successes / base_trials
    spread = Z * math.sqrt((1 - share) / successes + (1 - base) / base_successes)
    ratio = share / base
    return {"rate": ratio, "low": ratio * math.exp(-spread), "high": ratio * math.exp(spread)}


def is_covered(mean_weight: float, effective_size: float, num_lists: int) -> bool:
    """Whether a log has the lists that another policy would show: the mean importance weight is then 1, up to chance.

    >>> is_covered(1.1, 900.0, 1000), is_covered(0.4, 900.0, 1000)
    (True, False)
    """
    error = mean_weight * math.sqrt(max(0.0, 1 / effective_size - 1 / num_lists)) if effective_size > 0 else 0.0
    return abs(mean_weight - 1) <= max(_MEAN_WEIGHT_ERROR, _STANDARD_ERRORS * error)
