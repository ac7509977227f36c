"""Beta priors of click probabilities: given, or estimated from the log."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankpolicy.optional import require

Prior = tuple[float, float]
PriorChoice = tuple[float, ...] | Literal["empirical"] | str | None
UNIFORM: Prior = (1.0, 1.0)


def first_prior(prior: PriorChoice) -> Prior:
    """The pseudo-counts of the first fit: those given, none for None, (1, 1) before an empirical prior is known."""
    if prior is None:
        return (0.0, 0.0)
    return UNIFORM if isinstance(prior, str) else (float(prior[0]), float(prior[1]))


def posterior_mean(successes: NDArray[np.float64], trials: NDArray[np.float64], prior: Prior) -> NDArray[np.float64]:
    """(successes + a) / (trials + a + b), the mean under a Beta(a, b) prior; 1/2 without any trials or prior.

    >>> posterior_mean(np.array([1.0, 0.0]), np.array([2.0, 0.0]), (1.0, 1.0)).tolist()
    [0.5, 0.5]
    """
    total = trials + sum(prior)
    # Successes are sums of differences; rounding errors may take them slightly below 0 or above trials.
    hits = np.minimum(np.maximum(successes, 0.0) + prior[0], total)
    return hits / total if sum(prior) > 0 else np.divide(hits, total, out=np.full(total.shape, 0.5), where=total > 0)


def log_prior(values: NDArray[np.float64], prior: Prior) -> float:
    """What the pseudo-counts add to the log-likelihood, a log(value) + b log(1 - value): posterior_mean maximises the total."""
    if prior == (0.0, 0.0):
        return 0.0
    return float(prior[0] * np.log(values).sum() + prior[1] * np.log1p(-values).sum())


def empirical_prior(successes: NDArray[np.float64], trials: NDArray[np.float64], *, iterations: int = 500) -> Prior:
    """The Beta(a, b) under which these counts are most likely (beta-binomial), by Minka's fixed point (2000):

    a <- a sum(digamma(successes + a) - digamma(a)) / sum(digamma(trials + a + b) - digamma(a + b)), and the same for b with failures.

    >>> a, b = empirical_prior(np.array([2.0, 8.0, 1.0]), np.array([10.0, 10.0, 10.0]))
    >>> 0.3 < a / (a + b) < 0.4
    True
    """
    tried = trials > 0
    s, n = successes[tried], trials[tried]
    if len(s) < 2:
        return UNIFORM
    digamma = require("scipy.special", "An empirical prior").digamma
    alpha = np.ones(2)
    counts = np.maximum(np.stack([s, n - s], -1), 0.0)
    for _ in range(iterations):
        total = alpha.sum()
        numerator = (digamma(counts + alpha) - digamma(alpha)).sum(0)
        denominator = (digamma(n + total) - digamma(total)).sum()
        # Where all rates are equal the likeliest prior is infinite; the bounds keep a finite one.
        updated = np.clip(alpha * numerator / denominator, 1e-3, 1e6)
        if np.allclose(updated, alpha, rtol=1e-8, atol=0.0):
            break
        alpha = updated
    return float(alpha[0]), float(alpha[1])
