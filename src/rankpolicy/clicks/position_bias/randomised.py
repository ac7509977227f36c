"""Propensities from randomised traffic (Wang, Bendersky, Metzler & Najork 2016): global, by segment, or regressed on query features.

Where positions are drawn at random, the items at every position are equally relevant on average, so that

    propensity of rank k = click-through at k / click-through at 1.

The log must come from such traffic; for any other log the result is the plain click-through curve, which mixes relevance and bias.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.row_counts import ratio
from rankpolicy.clicks.position_bias.evidence import Evidence, PositionBiasMethod

MOST_STEPS, SMALL_STEP, LARGEST_STEP = 50, 1e-10, 2.0


def relative_to_first(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (..., position) divided by the first; NaN where a value is not above 0: that propensity is not determined.

    >>> relative_to_first(np.array([0.5, 0.25, 0.0]))
    array([1. , 0.5, nan])
    """
    positive = np.where(values > 0, values, np.nan)
    return positive / positive[..., :1]


def randomised(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Randomised traffic, one curve for all queries: click-through by rank (resample, position)."""
    counts = evidence.position_counts(weights)
    return relative_to_first(ratio(counts.clicks, counts.shown))


def randomised_by_segment(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Randomised traffic, one curve per segment of sessions; the result is their mean, weighted by sessions (resample, position)."""
    assert evidence.segments is not None
    curves, shares = [], []
    for segment in np.unique(evidence.segments):
        of_segment = weights * (evidence.segments == segment)
        curves.append(randomised(evidence, of_segment))
        shares.append(of_segment.sum(1) / weights.sum(1))
    return np.asarray(np.einsum("sr,srp->rp", np.array(shares), np.array(curves)), np.float64)


def randomised_regression(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Randomised traffic, log-linear in query features; the result is the mean curve over sessions (resample, position)."""
    design, codes = evidence.feature_groups
    counts = evidence.group_counts(weights)
    curves = np.full((len(weights), evidence.num_positions), np.nan)
    for resample, (shown, clicks) in enumerate(zip(counts.shown, counts.clicks, strict=True)):
        of_groups = np.exp(design @ feature_weights(shown, clicks, design).T)
        sizes = np.bincount(codes, weights[resample], len(design))
        curves[resample] = sizes @ of_groups / sizes.sum()
    return curves


RANDOMISED = PositionBiasMethod(title="randomised traffic", estimate=randomised)
RANDOMISED_BY_SEGMENT = PositionBiasMethod(
    title="randomised traffic by segment", estimate=randomised_by_segment, needs="segments"
)
RANDOMISED_REGRESSION = PositionBiasMethod(
    title="randomised traffic regressed on query features", estimate=randomised_regression, needs="query_features"
)


def feature_weights(
    shown: NDArray[np.float64], clicks: NDArray[np.float64], design: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Weights (position, feature) of propensity_k(x) = exp(weights_k . x) from counts (row, position); the first row is 0.

    A click on a row falls on rank k with probability shown_k propensity_k(x) / sum over j of shown_j propensity_j(x): relevance
    cancels. The likelihood of this multinomial logit is concave, and Newton's method finds its maximum. NaN where a rank has no clicks.

    >>> counts = np.array([[10.0, 10.0]]), np.array([[4.0, 2.0]])
    >>> np.exp(feature_weights(*counts, np.ones((1, 1)))[1]).round(6)
    array([0.5])
    """
    num_positions, num_features = shown.shape[1], design.shape[1]
    weights = np.full((num_positions, num_features), np.nan)
    clicked = np.flatnonzero(clicks.sum(0) > 0)
    if len(clicked) == 0 or clicked[0] != 0:
        return weights
    shown, clicks = shown[:, clicked], clicks[:, clicked]
    totals = clicks.sum(1)
    with np.errstate(divide="ignore"):
        offsets = np.where(totals[:, None] > 0, np.log(shown), 0.0)
    beta = np.zeros((len(clicked), num_features))
    for _ in range(MOST_STEPS):
        logits = offsets + design @ beta.T
        chances = np.exp(logits - logits.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        gradient = (clicks - totals[:, None] * chances)[:, 1:].T @ design
        step = np.linalg.lstsq(_information(totals, chances[:, 1:], design), gradient.ravel(), rcond=None)[0]
        beta[1:] += np.clip(step, -LARGEST_STEP, LARGEST_STEP).reshape(gradient.shape)
        if abs(step).max(initial=0.0) < SMALL_STEP:
            break
    weights[clicked] = beta
    return weights


def _information(
    totals: NDArray[np.float64], chances: NDArray[np.float64], design: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Minus the second derivative of the log-likelihood, over (position, feature) flattened."""
    num_positions, num_features = chances.shape[1], design.shape[1]
    crossed = (chances[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    information = -(crossed * totals[:, None]).T @ crossed
    blocks = information.reshape(num_positions, num_features, num_positions, num_features)
    for position in range(num_positions):
        blocks[position, :, position, :] += (design * (totals * chances[:, position])[:, None]).T @ design
    return information
