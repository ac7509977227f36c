"""Sums of ratios of means over rounds that come in blocks: means and co-moments, which merge."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankpolicy.off_policy.intervals import SumOfRatios, ratio
from rankpolicy.off_policy.weights import ImportanceWeights

Floats = NDArray[np.float64]


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
        return math.sqrt(max(0.0, float(slopes @ self._products @ slopes)) / (n * (n - 1)))

    def _halves(self) -> tuple[Floats, Floats | None]:
        if not self._has_denominators:
            return self._means, None
        half = len(self._means) // 2
        return self._means[:half], self._means[half:]


class WeightSums:
    """What is reported about importance weights that come in blocks: mean, effective sample size, and how many were clipped.

    >>> sums = WeightSums()
    >>> sums.add(ImportanceWeights(values=np.array([[2.0], [1.0], [1.0]])))
    >>> sums.means_and_effective_sample_sizes()  # 4 / 3, 16 / 6
    (array([1.33333333]), array([2.66666667]))
    """

    def __init__(self) -> None:
        self.num_rounds = self.num_clipped = 0
        self._totals: Floats = np.zeros(1)  # each is added to the sums of all columns
        self._squares: Floats = np.zeros(1)

    def add(self, weights: ImportanceWeights | None) -> None:
        """Take the weights of some more rounds; None for an estimator without weights."""
        if weights is None:
            return
        totals = np.ones(len(weights.values)) @ weights.values
        squares = np.einsum("rp,rp->p", weights.values, weights.values)
        self._totals, self._squares = self._totals + totals, self._squares + squares
        self.num_rounds += len(weights.values)
        self.num_clipped += weights.num_clipped

    def means_and_effective_sample_sizes(self) -> tuple[Floats, Floats]:
        """For each column the mean of w, which is 1 in expectation, and the effective sample size (sum of w)² / sum of w² (Kong 1992)."""
        sizes = np.divide(self._totals**2, self._squares, out=np.zeros_like(self._squares), where=self._squares > 0)
        return self._totals / self.num_rounds, sizes
