"""Indices of bandits on a GPU, in float64 for all items at once, and counter-based random numbers.

The formulas are those of bandits/indices.py and kernels/bandits/kl_ucb.py. What run r draws in step t for item i and purpose p depends on
the seed and on (r, t, i, p) alone, so it does not matter how many runs there are.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rankpolicy.kernels.bandits.kl_ucb import HIGHEST, MOST_STEPS, SMALLEST_STEP
from rankpolicy.kernels.bandits.memory import NEVER_OBSERVED

# What random numbers are for.
TIES, FREE, USER, EXPLORE, KEYS, SUCCESSES, FAILURES = (tl.constexpr(purpose) for purpose in range(7))
_HIGHEST, _SMALLEST_STEP, _MOST_STEPS = tl.constexpr(HIGHEST), tl.constexpr(SMALLEST_STEP), tl.constexpr(MOST_STEPS)
_NEVER_OBSERVED = tl.constexpr(NEVER_OBSERVED)
_MOST_TRIES = tl.constexpr(64)


@triton.jit
def random_bits(seed, run, step, purpose, what):
    """Four numbers of 32 random bits for each ``what``, whole numbers below 2^32."""
    late = (step >> 32).to(tl.uint32)
    early = (step & 0xFFFFFFFF).to(tl.uint32)
    return tl.philox(seed, what, early, run, late * 16 + purpose)


@triton.jit
def random_word(seed, run, step, purpose, what):
    """32 random bits for each ``what``."""
    word, _, _, _ = random_bits(seed, run, step, purpose, what)
    return word


@triton.jit
def uniform(bits):
    """A number between 0 and 1, neither of them."""
    return (bits.to(tl.float64) + 0.5) * 2.3283064365386963e-10


@triton.jit
def kl_ucb(clicks, observations, threshold):
    """The KL-UCB index of each item: Newton's method, until the last item has come to rest."""
    is_observed = observations > 0.0
    trials = tl.where(is_observed, observations, 1.0)
    mean = clicks / trials
    divergence = threshold / trials
    is_open = is_observed & (mean > 0.0) & (mean < 1.0) & (divergence > 0.0)
    m = tl.where(is_open, mean, 0.5)
    d = tl.where(is_open, divergence, 0.5)
    other = 1.0 - m
    target = d - m * tl.log(m) - other * tl.log(other)
    highest = 1.0 - tl.exp(-target / other)
    highest = tl.where(highest > _HIGHEST, highest * 0.0 + _HIGHEST, highest)
    q = tl.minimum(highest, m + tl.sqrt(2.0 * m * other * d) + d)
    num_open = tl.sum(is_open.to(tl.int32), 0)
    num_steps = 0
    while (num_open > 0) & (num_steps < _MOST_STEPS):
        # An index that is not above the mean: the divergence is smaller than rounding errors.
        is_flat = q <= m
        q = tl.where(is_open & is_flat, m, q)
        is_open = is_open & ~is_flat
        safe = tl.where(is_open, q, 0.5 * (1.0 + m))
        slope = (safe - m) / (safe * (1.0 - safe))
        moved = tl.minimum(highest, safe + (target + m * tl.log(safe) + other * tl.log(1.0 - safe)) / slope)
        is_at_rest = tl.abs(moved - safe) <= _SMALLEST_STEP * (1.0 - moved)
        q = tl.where(is_open, moved, q)
        is_open = is_open & ~is_at_rest
        num_open = tl.sum(is_open.to(tl.int32), 0)
        num_steps += 1
    is_inner = (mean > 0.0) & (mean < 1.0) & (divergence > 0.0)
    at_zero = tl.where(divergence > 0.0, 1.0 - tl.exp(-divergence), mean)
    at_ends = tl.where(mean <= 0.0, at_zero, tl.where(mean >= 1.0, 1.0, mean))
    return tl.where(is_observed, tl.where(is_inner, q, at_ends), _NEVER_OBSERVED)


@triton.jit
def kl_ucb_threshold(time, log_log_weight):
    """log t + weight log log t, 0 at the first list."""
    log_time = tl.log(tl.where(time > 1.0, time, 2.0))
    threshold = log_time + log_log_weight * tl.log(log_time)
    return tl.where((time > 1.0) & (threshold > 0.0), threshold, 0.0)


@triton.jit
def ucb1(clicks, observations, threshold):
    """The UCB1 index of each item."""
    trials = tl.where(observations > 0.0, observations, 1.0)
    return tl.where(observations > 0.0, clicks / trials + tl.sqrt(threshold / trials), _NEVER_OBSERVED)


@triton.jit
def click_rate(clicks, observations):
    """Clicks per observation of each item."""
    trials = tl.where(observations > 0.0, observations, 1.0)
    return tl.where(observations > 0.0, clicks / trials, _NEVER_OBSERVED)


@triton.jit
def beta_draws(a, b, seed, run, step, items):
    """A draw from Beta(a, b) for each item: the share of one of two Gamma numbers."""
    successes = gamma_draws(a, seed, run, step, SUCCESSES, items)
    failures = gamma_draws(b, seed, run, step, FAILURES, items)
    total = successes + failures
    return tl.where(total > 0.0, successes / tl.where(total > 0.0, total, 1.0), 0.5)


@triton.jit
def gamma_draws(shape, seed, run, step, purpose, items):
    """A draw from Gamma(shape) for each item, by rejection (Marsaglia & Tsang 2000); shapes below 1 from those above."""
    is_small = shape < 1.0
    d = tl.where(is_small, shape + 1.0, shape) - 1.0 / 3.0
    c = 1.0 / tl.sqrt(9.0 * d)
    drawn = d
    is_open = shape > 0.0
    num_open = tl.sum(is_open.to(tl.int32), 0)
    tries = 0
    while (num_open > 0) & (tries < _MOST_TRIES):
        first, second, third, _unused = random_bits(seed, run, step, purpose, items + tries * 65536)
        # Normal numbers from 32 bits, in float32: what is accepted is decided in float64.
        radius = tl.sqrt(-2.0 * tl.log(uniform(first).to(tl.float32)))
        x = (radius * tl.cos(6.283185307179586 * uniform(second).to(tl.float32))).to(tl.float64)
        root = 1.0 + c * x
        v = root * root * root
        is_positive = root > 0.0
        bound = 0.5 * x * x + d - d * v + d * tl.log(tl.where(is_positive, v, 1.0))
        is_taken = is_open & is_positive & (tl.log(uniform(third)) < bound)
        drawn = tl.where(is_taken, d * v, drawn)
        is_open = is_open & ~is_taken
        num_open = tl.sum(is_open.to(tl.int32), 0)
        tries += 1
    # Powers of a number of their own, where the shape is below 1.
    power = tl.log(uniform(random_word(seed, run, step, purpose, items + _MOST_TRIES * 65536)))
    return drawn * tl.where(is_small, tl.exp(power / tl.where(shape > 0.0, shape, 1.0)), 1.0)
