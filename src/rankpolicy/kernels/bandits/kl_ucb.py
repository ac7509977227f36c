"""The KL-UCB index of a Bernoulli mean (Garivier & Cappé 2011): the largest q in [p, 1] with kl(p, q) <= d.

kl(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)) is convex in q, so Newton's method comes down to the root from the right, without
overshooting, from anywhere beyond it; a start left of it lands there after one step.
"""

import math

from rankpolicy.kernels.bandits.step import compiled

HIGHEST = 1.0 - 1e-12
# Newton's error after a step is about its square: far below 1e-9 after one this small.
SMALLEST_STEP = 1e-8
MOST_STEPS = 50


@compiled
def kl_ucb_index(mean, divergence):
    """max {q in [mean, 1] : kl(mean, q) <= divergence}."""
    if mean >= 1.0 or divergence <= 0.0:
        return min(mean, 1.0)
    if mean <= 0.0:
        return 1.0 - math.exp(-divergence)
    other = 1.0 - mean
    target = divergence - mean * math.log(mean) - other * math.log(other)  # of -p log q - (1 - p) log(1 - q)
    # Without -p log q, which is positive: right of the root, and not so near 1 that steps from there are short.
    highest = min(HIGHEST, 1.0 - math.exp(-target / other))
    q = min(highest, mean + math.sqrt(2.0 * mean * other * divergence) + divergence)
    for _ in range(MOST_STEPS):
        if q <= mean:  # the divergence is lost in rounding
            return mean
        before = q
        slope = (q - mean) / (q * (1.0 - q))
        q += (target + mean * math.log(q) + other * math.log(1.0 - q)) / slope
        q = min(highest, q)
        if abs(q - before) <= SMALLEST_STEP * (1.0 - q):
            break
    return q


@compiled
def fill_kl_ucb(means, divergences, indices):
    """The index of each pair, into indices."""
    for i in range(len(means)):
        indices[i] = kl_ucb_index(means[i], divergences[i])
