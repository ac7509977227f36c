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


class RatioMoments:
    """What the value of a ``SumOfRatios`` and its standard error depend on: means and centred second moments of its columns.

    Blocks are merged by the formula of Chan, Golub & LeVeque (1983), which loses no digits where means are large compared with deviations.

    >>> rounds = SumOfRatios(numerators=np.array([[1.0], [0.0], [2.0]]), denominators=np.array([[1.0], [3.0], [2.0]]))
    >>> moments = RatioMoments()
    >>> moments.add(SumOfRatios(numerators=rounds.numerators[:1], denominators=rounds.denominators[:1]))
    >>> moments.add(SumOfRatios(numerators=rounds.numerators[1:], denominators=rounds.denominators[1:]))
    >>> moments.value, round(moments.standard_error() / rounds.standard_error(), 12)
    (0.5, 1.0)
    """

    def __init__(self) -> None:
        self.num_rounds = 0
        self._means: Floats = np.zeros(0)
        self._products: Floats = np.zeros((0, 0))  # sums of products of deviations from the means
        self._has_denominators = False

    def add(self, terms: SumOfRatios) -> None:
        """Take some more rounds."""
        self._has_denominators = terms.denominators is not None
        columns = terms.numerators
        if terms.denominators is not None:
            columns = np.concatenate([terms.numerators, terms.denominators], axis=1)
        means = columns.mean(0)
        deviations = columns - means
        means += deviations.mean(0)  # what rounding left out
        deviations = columns - means
        products = deviations.T @ deviations
        if self.num_rounds == 0:
            self.num_rounds, self._means, self._products = len(columns), means, products
            return
        total = self.num_rounds + len(columns)
        step = means - self._means
        self._products = self._products + products + np.outer(step, step) * (self.num_rounds * len(columns) / total)
        self._means = self._means + step * (len(columns) / total)
        self.num_rounds = total

    @property
    def value(self) -> float:
        """The sum over terms."""
        above, below = self._halves()
        return float(above.sum() if below is None else ratio(above, below).sum())

    def standard_error(self) -> float:
        """sqrt(sum of squared influences / (n (n - 1))); NaN for one round."""
        n = self.num_rounds
        if n < 2:
            return math.nan
        above, below = self._halves()
        if below is None:
            slopes = np.ones_like(above)
        else:
            per_mean = ratio(np.ones_like(below), below)
            slopes = np.concatenate([per_mean, -ratio(above, below) * per_mean])
        return math.sqrt(np.maximum(0.0, slopes @ self._products @ slopes) / (n * (n - 1)))  # NaN stays

    def _halves(self) -> tuple[Floats, Floats | None]:
        if not self._has_denominators:
            return self._means, None
        half = len(self._means) // 2
        return self._means[:half], self._means[half:]


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
