"""How many more clicks per list a policy earns than random lists, or than the version before it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

from rankpolicy.service.dashboard.intervals import Z, is_covered

FEWEST_LISTS = 50.0  # equally weighted ones that the weighted lists must be worth, before an interval is believed
FEW = "too few lists so far"
UNCOVERED = "its lists are too far from random ones; give it random_lists, or serve kind uniform to some users"


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
    """Clicks per list, r, beside what random lists would have had by the same log, g = Σ_p w_p r_p.

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
    ratio, spread = value / base, Z * math.sqrt(variance)
    return {"value": ratio - 1, "low": ratio * math.exp(-spread) - 1, "high": ratio * math.exp(spread) - 1}
