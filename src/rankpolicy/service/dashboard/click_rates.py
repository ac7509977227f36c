"""Click rates with their intervals: shares, ratios of shares, and how many more clicks per list a policy earns than others.

The others are random lists, or the version before it.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

Z = 1.959964  # 95 %
_MEAN_WEIGHT_ERROR, _STANDARD_ERRORS = 0.2, 2.0
FEWEST_LISTS = 50.0  # equally weighted ones that the weighted lists must be worth, before an interval is believed
FEW = "too few lists so far"
UNCOVERED = "its lists are too far from random ones; give it random_lists, or serve kind uniform to some users"


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
    low, high = _around(share / base, (1 - share) / successes + (1 - base) / base_successes)
    return {"rate": share / base, "low": low, "high": high}


def is_covered(mean_weight: float, effective_size: float, num_lists: int) -> bool:
    """Whether a log has the lists that another policy would show: the mean importance weight is then 1, up to chance.

    >>> is_covered(1.1, 900.0, 1000), is_covered(0.4, 900.0, 1000)
    (True, False)
    """
    error = mean_weight * math.sqrt(max(0.0, 1 / effective_size - 1 / num_lists)) if effective_size > 0 else 0.0
    return abs(mean_weight - 1) <= max(_MEAN_WEIGHT_ERROR, _STANDARD_ERRORS * error)


class ClickMoments:
    """Lists, clicks on them, and squares of the clicks on each."""

    def __init__(self) -> None:
        self.lists = self.clicks = self.squares = 0

    def add_click(self, before: int) -> None:
        """Count a click on a list that had ``before`` of them."""
        self.clicks += 1
        self.squares += 2 * before + 1

    def over(self, other: ClickMoments) -> dict[str, float] | None:
        """Clicks per list relative to those of another version, each on the lists that it showed; None where that is not known."""
        if min(self.lists, other.lists) < FEWEST_LISTS or not (self.clicks and other.clicks):
            return None
        variance = self._relative_variance() + other._relative_variance()
        return _relative(self.clicks / self.lists, other.clicks / other.lists, variance)

    def _relative_variance(self) -> float:
        return max(0.0, self.squares / self.clicks**2 - 1 / self.lists)


class UpliftOverRandom:
    """Clicks per list, r, compared with what random lists would have had by the same log, g = Σ_p w_p r_p.

    w_p = π_random(first p items) / π_logged(first p items): the estimator ``rips``, on lists that are shown with known chances. Both come
    from the same lists, so the interval of r / g takes account of how they vary together (delta method on the logarithm).
    """

    def __init__(self) -> None:
        self.lists = 0
        self._r = self._g = self._rr = self._rg = self._gg = 0.0
        self._weights = self._squares = 0.0  # of whole lists

    def add_list(self, weights: Sequence[float]) -> None:
        """Count a list by its weights, one per position."""
        self.lists += 1
        self._weights += weights[-1]
        self._squares += weights[-1] ** 2

    def add_click(self, weight: float, *, clicks: int, weighted: float) -> None:
        """Count a click of this weight on a list that had ``clicks`` of them, ``weighted`` together, before."""
        self._r += 1
        self._g += weight
        self._rr += 2 * clicks + 1
        self._rg += weighted + weight * (clicks + 1)
        self._gg += weight * (2 * weighted + weight)

    def document(self) -> dict[str, Any]:
        """The uplift with a 95 % interval; what random lists would earn; or why neither is known."""
        size = self._weights**2 / self._squares if self._squares else 0.0
        document: dict[str, Any] = {"lists": self.lists, "effective_lists": size, "why_unknown": None}
        if self.lists >= FEWEST_LISTS and not is_covered(self._weights / self.lists, size, self.lists):
            return document | {"why_unknown": UNCOVERED}
        if size < FEWEST_LISTS or not (self._r and self._g):
            return document | {"why_unknown": FEW if self.lists < 100 * FEWEST_LISTS else UNCOVERED}
        r, g = self._r, self._g
        variance = self._rr / r**2 - 2 * self._rg / (r * g) + self._gg / g**2
        document["random_clicks_per_list"] = g / self.lists
        return document | _relative(r / self.lists, g / self.lists, max(0.0, variance))


def weights_of_random(propensities: Sequence[float], num_items: int) -> array[float] | None:
    """Weights of the first 1, 2, ... items of a list for random lists; None where the list was certain, which says nothing about others."""
    if not propensities or min(propensities) <= 0 or (min(propensities) == 1 and num_items > 1):
        return None
    weight, weights = 1.0, array("d")
    for position, propensity in enumerate(propensities):
        weight /= (num_items - position) * propensity
        weights.append(weight)
    return weights


def _relative(value: float, base: float, variance: float) -> dict[str, float]:
    low, high = _around(value / base, variance)
    return {"value": value / base - 1, "low": low - 1, "high": high - 1}


def _around(ratio: float, variance: float) -> tuple[float, float]:
    """The 95 % interval of a ratio whose logarithm has this variance."""
    spread = Z * math.sqrt(variance)
    return ratio * math.exp(-spread), ratio * math.exp(spread)
