"""A lower bound of a sum of means that holds at all times at once, whatever the data depend on."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LAMBDAS = 0.75 * 0.5 ** np.arange(12)  # the best one for n terms of variance v is about sqrt(2 log(1/error) / (n v))
_PSI = -np.log1p(-_LAMBDAS) - _LAMBDAS


class SumLowerBound:
    """Lower bound of Σ E[X_i | past] for terms X_i >= -range, at all times with probability 1 - error.

    Empirical Bernstein (Fan, Grama & Liu 2015; Howard et al. 2021): for every λ in (0, 1)

    Σ E[X_i | past] >= Σ X_i - range (log(1 / error) + ψ(λ) Σ X_i² / range²) / λ,    ψ(λ) = -log(1 - λ) - λ.

    The best of twelve λ, each with a twelfth of the error. Terms may depend on all earlier ones, and their means may drift: nothing is
    assumed but the range. No upper bound is needed.

    Parameters
    ----------
    range
        No term is below -range.
    error
        Probability that the bound is ever above the sum of the means.

    >>> bound = SumLowerBound(range=1.0, error=0.05)
    >>> bound.add(np.ones(100))
    >>> 0 < bound.value < 100
    True
    """

    def __init__(self, *, range: float, error: float) -> None:
        self.range, self.error = range, error
        self.state: NDArray[np.float64] = np.zeros(3)  # number of terms, their sum, the sum of their squares

    def add(self, terms: ArrayLike) -> None:
        """Take some more terms."""
        values = np.asarray(terms, np.float64)
        self.state = self.state + np.array([values.size, values.sum(), np.square(values).sum()])

    @property
    def value(self) -> float:
        """The bound now."""
        _, total, squares = self.state
        widths = (math.log(len(_LAMBDAS) / self.error) + _PSI * squares / self.range**2) / _LAMBDAS
        return float(total - self.range * widths.min())
