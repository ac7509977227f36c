"""Sums of ratios of means over rounds, the form of every off-policy estimate, with their standard errors and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.arguments import seeded
from rankpolicy.optional import require

Floats = NDArray[np.float64]

_DRAWS_OF_A_BLOCK = 1 << 21


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumOfRatios:
    """value = sum over terms of mean(numerators) / mean(denominators), means over rounds; denominators are 1 if not given.

    >>> SumOfRatios(numerators=np.array([[1.0], [0.0]]), denominators=np.array([[1.0], [3.0]])).value
    0.25
    """

    numerators: Floats  # (round, term)
    denominators: Floats | None = None  # (round, term)

    @property
    def num_rounds(self) -> int:
        """Number of rounds."""
        return len(self.numerators)

    @property
    def value(self) -> float:
        """The sum over terms."""
        return float(self._values(np.full((1, self.num_rounds), 1 / self.num_rounds))[0])

    def influences(self) -> Floats:
        """Influence of each round on the value, to first order: the sum of (numerator - ratio denominator) / mean(denominator)."""
        if self.denominators is None:
            totals = self.numerators @ np.ones(self.numerators.shape[1])
            return np.asarray(totals - totals.mean())
        ones = np.ones(self.num_rounds)
        means = ones @ self.denominators / self.num_rounds
        ratios = ratio(ones @ self.numerators / self.num_rounds, means)
        per_mean = ratio(np.ones_like(means), means)
        return self.numerators @ per_mean - self.denominators @ (ratios * per_mean)

    def standard_error(self) -> float:
        """sqrt(sum of squared influences / (n (n - 1))); NaN for one round."""
        n = self.num_rounds
        influences = self.influences()
        return math.sqrt(float(influences @ influences) / (n * (n - 1))) if n > 1 else math.nan

    def resampled(self, num_resamples: int, random_state: int) -> Floats:
        """Values (resample,) of logs of as many rounds, drawn with replacement."""
        generator = seeded(random_state)
        values = np.empty(num_resamples)
        size_of_block = max(1, _DRAWS_OF_A_BLOCK // self.num_rounds)
        for first in range(0, num_resamples, size_of_block):
            size = min(size_of_block, num_resamples - first)
            drawn = generator.integers(self.num_rounds, size=(size, self.num_rounds))
            drawn += self.num_rounds * np.arange(size)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=size * self.num_rounds).reshape(size, self.num_rounds)
            values[first : first + size] = self._values(counts / self.num_rounds)
        return values

    def _values(self, shares: Floats) -> Floats:
        """Values (resample,) with each round weighted by ``shares`` (resample, round)."""
        means = shares @ self.numerators
        if self.denominators is not None:
            means = ratio(means, shares @ self.denominators)
        return np.asarray(means.sum(-1), np.float64)


# value ± z standard errors; ± t standard errors with n - 1 degrees of freedom, for few rounds; the middle of resampled values.
INTERVALS = ("normal", "t", "bootstrap")


def quantile_of(interval: str, level: float, num_rounds: int) -> float:
    """How many standard errors an interval reaches to either side of the value."""
    if interval == "normal":
        return NormalDist().inv_cdf((1 + level) / 2)
    degrees = max(num_rounds - 1, 1)
    return float(require("scipy.special", "The t interval").stdtrit(degrees, (1 + level) / 2))


def ratio(above: Floats, below: Floats) -> Floats:
    """The quotient, NaN where the denominator is 0."""
    # A term without any weight is undefined: NaN, and no warning.
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below != 0)
