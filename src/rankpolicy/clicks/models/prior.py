"""Beta priors of click probabilities: given, or learned from the log."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.types import RankPolicyError

Prior = tuple[float, float]
PriorChoice = Prior | Literal["empirical"] | None
UNIFORM: Prior = (1.0, 1.0)


def checked_prior(prior: PriorChoice) -> Prior:
    """The pseudo-counts to begin with: those given, none for None, (1, 1) before an empirical prior is known."""
    if prior is None:
        return (0.0, 0.0)
    if prior == "empirical":
        return UNIFORM
    good = isinstance(prior, tuple | list) and len(prior) == 2
    if not good or not all(isinstance(x, int | float) and math.isfinite(x) and x > 0 for x in prior):
        raise RankPolicyError(f"prior must be two numbers above 0, 'empirical' or None; got {prior!r}.")
    return float(prior[0]), float(prior[1])


def posterior_mean(successes: NDArray[np.float64], trials: NDArray[np.float64], prior: Prior) -> NDArray[np.float64]:
    """(successes + a) / (trials + a + b), the mean under a Beta(a, b) prior; 1/2 where neither trials nor prior say anything.

    >>> posterior_mean(np.array([1.0, 0.0]), np.array([2.0, 0.0]), (1.0, 1.0)).tolist()
    [0.5, 0.5]
    """
    total = trials + sum(prior)
    # Successes are sums and differences of their own, which may leave 0 to trials by a rounding error.
    hits = np.minimum(np.maximum(successes, 0.0) + prior[0], total)
    return hits / total if sum(prior) > 0 else np.divide(hits, total, out=np.full(total.shape, 0.5), where=total > 0)


def log_prior(values: NDArray[np.float64], prior: Prior) -> float:
    """What the pseudo-counts add to the log-likelihood, a log(value) + b log(1 - value): posterior_mean maximises their sum."""
    if prior == (0.0, 0.0):
        return 0.0
    return float(prior[0] * np.log(values).sum() + prior[1] * np.log1p(-values).sum())


def empirical_prior(successes: NDArray[np.float64], trials: NDArray[np.float64], *, iterations: int = 500) -> Prior:
    """The Beta(a, b) under which these counts are likeliest (beta-binomial), by Minka's fixed point (2000):

    a <- a sum(digamma(successes + a) - digamma(a)) / sum(digamma(trials + a + b) - digamma(a + b)), and so for b.

    >>> a, b = empirical_prior(np.array([2.0, 8.0, 1.0]), np.array([10.0, 10.0, 10.0]))
    >>> 0.3 < a / (a + b) < 0.4
    True
    """
    tried = trials > 0
    s, n = torch.from_numpy(successes[tried]), torch.from_numpy(trials[tried])
    if len(s) < 2:
        return UNIFORM
    alpha = torch.tensor([1.0, 1.0], dtype=torch.float64)
    counts = torch.stack([s, n - s], -1).clamp(min=0.0)
    digamma = torch.special.digamma
    for _ in range(iterations):
        total = alpha.sum()
        up = (digamma(counts + alpha) - digamma(alpha)).sum(0)
        down = (digamma(n + total) - digamma(total)).sum()
        # Equal rates everywhere have no finite prior; these bounds keep one, and pairs without data near it.
        updated = (alpha * up / down).clamp(1e-3, 1e6)
        if torch.allclose(updated, alpha, rtol=1e-8, atol=0.0):
            break
        alpha = updated
    return float(alpha[0]), float(alpha[1])
