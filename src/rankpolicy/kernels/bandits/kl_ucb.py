"""The KL-UCB index of a Bernoulli mean (Garivier & Cappé 2011): the largest q in [p, 1] with kl(p, q) <= d.

kl(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)) is convex in q. Newton's method from the right of the root therefore approaches it
without overshooting, and a start to the left of it lands on the right after one step.
"""

from __future__ import annotations

import math

from rankpolicy.kernels.bandits.formula import formula

HIGHEST = 1.0 - 1e-12
# The error after a step is about the square of the step, so after one this small it is far below 1e-9.
SMALLEST_STEP = 1e-8
MOST_STEPS = 50


@formula
def kl_ucb_index(mean: float, divergence: float) -> float:
    """max {q in [mean, 1] : kl(mean, q) <= divergence}."""
    if mean >= 1.0 or divergence <= 0.0:
        return min(mean, 1.0)
    if mean <= 0.0:
        return 1.0 - math.exp(-divergence)
    other = 1.0 - mean
    target = (
        divergence - mean * math.log(mean) - other * math.log(other)
    )  # value of -p log q - (1 - p) log(1 - q) at the root
    # The root if -p log q, which is positive, were 0: right of the true root, and not so near 1 that steps become short.
    highest = min(HIGHEST, 1.0 - math.exp(-target / other))
    q = min(highest, mean + math.sqrt(2.0 * mean * other * divergence) + divergence)
    for _ in range(MOST_STEPS):
        if q <= mean:  # the divergence is smaller than rounding errors
            return mean
        before = q
        slope = (q - mean) / (q * (1.0 - q))
        q += (target + mean * math.log(q) + other * math.log(1.0 - q)) / slope
        q = min(highest, q)
        if abs(q - before) <= SMALLEST_STEP * (1.0 - q):
            break
    return q
