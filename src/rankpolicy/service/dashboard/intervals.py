"""Intervals of shares and of ratios of shares."""

from __future__ import annotations

import math

Z = 1.959964  # 95 %


def share_with_interval(successes: int, trials: int) -> dict[str, float | None]:
    """A share with its 95 % Wilson interval; None for no trials.

    Parameters
    ----------
    successes, trials
        The counts.

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

    Parameters
    ----------
    successes, trials
        Counts of the share.
    base_successes, base_trials
        Counts of the share that it is divided by.

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
