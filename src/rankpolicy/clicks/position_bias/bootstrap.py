"""Intervals of propensities by the percentile bootstrap with Poisson weights, which needs no copies of a log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.position_bias.evidence import Evidence
from rankpolicy.clicks.position_bias.method import Estimate

RESAMPLED = ("sessions", "queries", "pairs")
NUMBERS_OF_A_BLOCK = 1 << 18  # weights or counts held at once: about what a processor's cache holds


def bootstrap_intervals(
    estimate: Estimate,
    evidence: Evidence,
    propensities: NDArray[np.float64],
    *,
    unit: str,
    num_resamples: int,
    level: float,
    random_state: int,
) -> NDArray[np.float64]:
    """The middle ``level`` of the propensities on resampled logs (position, 2); NaN for ranks that most resamples do not determine."""
    intervals = np.full((len(propensities), 2), np.nan)
    if num_resamples == 0:
        return intervals
    generator = np.random.default_rng(random_state)
    size = max(1, NUMBERS_OF_A_BLOCK // max(len(evidence.log), len(evidence.table) * evidence.num_positions))
    parts = [min(size, num_resamples - first) for first in range(0, num_resamples, size)]
    curves = np.concatenate([estimate(evidence, drawn_weights(evidence, unit, part, generator)) for part in parts])
    is_determined = ~np.isnan(propensities) & (np.isnan(curves).mean(0) < 0.5)
    tails = [(1 - level) / 2, (1 + level) / 2]
    # The next result falls below the j-th of n with probability j / (n + 1); numpy's usual quantiles cover about 1 % less at n = 200.
    intervals[is_determined] = np.nanquantile(curves[:, is_determined], tails, axis=0, method="weibull").T
    return intervals


def drawn_weights(
    evidence: Evidence, unit: str, num_resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """How often each session counts (resample, session): a Poisson number per session, or one per query or pair for all its sessions."""
    counts = evidence.log.counts
    if unit == "sessions":
        return generator.poisson(counts, (num_resamples, len(counts))).astype(np.float64)
    # A log of counts has one pair per row; all other places of the row hold a larger code.
    owners = evidence.log.queries if unit == "queries" else evidence.view.pairs.min(1)
    drawn = generator.poisson(1.0, (num_resamples, int(owners.max()) + 1)).astype(np.float64)
    return drawn[:, owners] * counts
