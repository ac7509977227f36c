"""Propensities from interventions: positions swapped at random, or items that different rankers showed at different positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.counts_by_pair import PairCounts
from rankpolicy.clicks.log.distinct import weighted_counts
from rankpolicy.clicks.models.base import ratio
from rankpolicy.clicks.position_bias.evidence import Evidence
from rankpolicy.clicks.position_bias.method import PositionBiasMethod
from rankpolicy.clicks.position_bias.pairwise import adjacent_curve, bradley_terry_curve, pivot_curve

ROUNDS = 2  # of all_pairs; a third round changes nothing that matters


def swaps(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clicks at two positions of each session that were swapped with probability 1/2 (Joachims, Swaminathan & Schnabel 2017).

    In such sessions both positions show the same items equally often: E[j, k] = clicks at j in sessions where j and k could be swapped.
    """
    assert evidence.swaps is not None
    num_positions = evidence.num_positions
    rows = np.flatnonzero((evidence.swaps >= 0).all(1))
    places = evidence.swaps[rows]
    codes = np.concatenate([places[:, 0] * num_positions + places[:, 1], places[:, 1] * num_positions + places[:, 0]])
    clicked = evidence.view.clicks[np.tile(rows, 2), places.T.ravel()]
    codes, rows = codes[clicked], np.tile(rows, 2)[clicked]
    matrix = np.stack([weighted_counts(codes, of_rows[rows], num_positions**2) for of_rows in weights])
    return bradley_terry_curve(matrix.reshape(-1, num_positions, num_positions))


def pivot(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clicks on items shown both at rank 1 and at rank k (Agarwal, Zaitsev, Wang, Li, Najork & Joachims 2019)."""
    return pivot_curve(harvested(evidence.pair_counts(weights)))


def adjacent(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clicks on items shown both at rank k and at rank k + 1, chained from the first rank down."""
    return adjacent_curve(harvested(evidence.pair_counts(weights)))


def all_pairs(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clicks on items shown at any two ranks, with all comparisons in one likelihood.

    Agarwal et al. (2019) also have a relevance parameter for every two ranks. With Poisson counts of clicks the maximising relevance has a
    closed form, and what remains is the Bradley-Terry likelihood, which has one maximum. The weight of each item depends on the
    propensities, so there are two rounds: first with equal propensities, then with those found.
    """
    counts = evidence.pair_counts(weights)
    curve = np.ones((len(weights), evidence.num_positions))
    for _ in range(ROUNDS):
        curve = bradley_terry_curve(harvested_together(counts, np.nan_to_num(curve)))
    return curve


SWAPS = PositionBiasMethod(title="positions swapped at random", estimate=swaps, needs="swaps", needs_sessions=True)
PIVOT = PositionBiasMethod(title="harvested interventions, first rank as pivot", estimate=pivot)
ADJACENT = PositionBiasMethod(title="harvested interventions, chain of adjacent ranks", estimate=adjacent)
ALL_PAIRS = PositionBiasMethod(title="harvested interventions, all pairs of ranks", estimate=all_pairs)


def harvested(counts: PairCounts) -> NDArray[np.float64]:
    """E[j, k] = sum over (query, item) pairs shown at j and at k of clicks_j shown_k / (shown_j + shown_k) (resample, position, position).

    The click-through of a pair is weighted by shown_j shown_k / (shown_j + shown_k) on either side: both sides have the same mix of pairs,
    and a pair that was hardly shown at one of the ranks has little weight (Mantel & Haenszel 1959).

    >>> counts = PairCounts(shown=np.array([[[10.0, 30.0]]]), clicks=np.array([[[8.0, 12.0]]]))
    >>> harvested(counts)
    array([[[0., 6.],
            [3., 0.]]])
    """
    shown, clicks = counts.shown, counts.clicks
    num_positions = shown.shape[2]
    matrix = np.empty((len(shown), num_positions, num_positions))
    for position in range(num_positions):
        shares = ratio(shown, shown[:, :, position, None] + shown)
        matrix[:, position] = np.einsum("ri,rik->rk", clicks[:, :, position], shares)
        matrix[:, position, position] = 0.0
    return matrix


def harvested_together(counts: PairCounts, propensities: NDArray[np.float64]) -> NDArray[np.float64]:
    """E[j, k] = (p_j + p_k) sum over pairs of clicks_j shown_k / sum over l of shown_l p_l, with p (resample, position).

    A click on a pair falls on rank j with probability shown_j p_j / sum over l of shown_l p_l. With these weights the Bradley-Terry
    likelihood has the gradient of that multinomial likelihood at p, so that overlapping comparisons are not counted twice. Any p gives a
    consistent curve; one near the truth gives the least variance.

    >>> counts = PairCounts(shown=np.array([[[10.0, 30.0]]]), clicks=np.array([[[8.0, 12.0]]]))
    >>> harvested_together(counts, np.ones((1, 2)))
    array([[[ 0., 12.],
            [ 6.,  0.]]])
    """
    shown, clicks = counts.shown, counts.clicks
    expected = np.einsum("rik,rk->ri", shown, propensities)[:, :, None]
    shares = ratio(clicks, np.broadcast_to(expected, clicks.shape))
    matrix: NDArray[np.float64] = np.einsum("rij,rik->rjk", shares, shown) * (
        propensities[:, :, None] + propensities[:, None, :]
    )
    matrix[:, range(shown.shape[2]), range(shown.shape[2])] = 0.0
    return matrix
