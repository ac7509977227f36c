"""Propensities from interventions: positions swapped at random, or items that different rankers showed at different positions.

Entry E[j, k] of a matrix counts clicks at rank j in its comparison with rank k. Both sides of a comparison show the same items equally
often, so E[j, k] / E[k, j] = propensity_j / propensity_k. There are three ways to combine comparisons into one curve: against the first
rank only (pivot), from each rank to the next (adjacent), or all together (Bradley-Terry).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.log_pairs import PairCounts
from rankpolicy.clicks.log.row_counts import ratio, weighted_counts
from rankpolicy.clicks.position_bias.evidence import Evidence, PositionBiasMethod
from rankpolicy.clicks.position_bias.randomised import relative_to_first

MOST_STEPS, SMALL_STEP = 100, 1e-10  # of Newton's method
ROUNDS = 2  # of all_pairs; a third round changes nothing that matters


def swaps(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clicks at two positions of each session that were swapped with probability 1/2 (Joachims, Swaminathan & Schnabel 2017).

    In such sessions both positions show the same items equally often: E[j, k] = clicks at j in sessions where j and k could be swapped.
    """
    assert evidence.swaps is not None
    num_positions = evidence.num_positions
    rows = np.flatnonzero((evidence.swaps >= 0).all(1))
    swapped_positions = evidence.swaps[rows]
    codes = np.concatenate(
        [
            swapped_positions[:, 0] * num_positions + swapped_positions[:, 1],
            swapped_positions[:, 1] * num_positions + swapped_positions[:, 0],
        ]
    )
    clicked = evidence.view.clicks[np.tile(rows, 2), swapped_positions.T.ravel()]
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


def pivot_curve(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """propensity_k = E[k, 1] / E[1, k] (resample, position).

    >>> pivot_curve(np.array([[[0.0, 6.0], [3.0, 0.0]]]))
    array([[1. , 0.5]])
    """
    curve = ratio(matrix[:, :, 0], matrix[:, 0, :])
    curve[:, 0] = 1.0
    return relative_to_first(curve)


def adjacent_curve(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """propensity_k = product over j < k of E[j + 1, j] / E[j, j + 1] (resample, position); ranks after a missing link are NaN.

    >>> adjacent_curve(np.array([[[0.0, 6.0, 0.0], [3.0, 0.0, 4.0], [0.0, 1.0, 0.0]]]))
    array([[1.   , 0.5  , 0.125]])
    """
    down = np.diagonal(matrix, -1, axis1=1, axis2=2)
    up = np.diagonal(matrix, 1, axis1=1, axis2=2)
    links = np.insert(ratio(down, up), 0, 1.0, axis=1)
    return relative_to_first(np.asarray(np.cumprod(links, axis=1), np.float64))


def bradley_terry_curve(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The propensities that maximise sum over j, k of E[j, k] log(propensity_j / (propensity_j + propensity_k)) (resample, position).

    This is the likelihood of all comparisons (Bradley & Terry 1952). It is concave in log propensities, so Newton's method finds its
    maximum. Ranks that no chain of comparisons with clicks on both sides links to the first are NaN.

    >>> bradley_terry_curve(np.array([[[0.0, 6.0], [3.0, 0.0]]])).round(9)
    array([[1. , 0.5]])
    """
    num_positions = matrix.shape[1]
    counts = np.where((matrix > 0) & (matrix.swapaxes(1, 2) > 0), matrix, 0.0)
    counts[:, range(num_positions), range(num_positions)] = 0.0
    is_linked = linked_to_first(counts > 0)
    counts = np.where(is_linked[:, :, None] & is_linked[:, None, :], counts, 0.0)
    totals = counts + counts.swapaxes(1, 2)
    logs = np.zeros(matrix.shape[:2])
    # The first rank stays at 0. Unlinked ranks have no information; a 1 on the diagonal keeps the system solvable and leaves them at 0.
    fill = np.where(is_linked, 0.0, 1.0)
    fill[:, 0] = 1.0
    diagonal = np.eye(num_positions)
    for _ in range(MOST_STEPS):
        chance = 1.0 / (1.0 + np.exp(logs[:, None, :] - logs[:, :, None]))
        gradient = (counts - totals * chance).sum(2)
        curvature = totals * chance * (1.0 - chance)
        information = diagonal * (curvature.sum(2) + fill)[:, :, None] - curvature
        information[:, 0, 1:] = information[:, 1:, 0] = gradient[:, 0] = 0.0
        step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        logs += np.clip(step, -1.0, 1.0)
        if abs(step).max() < SMALL_STEP:
            break
    return np.where(is_linked, np.exp(logs), np.nan)


def linked_to_first(links: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which positions are joined to the first by a chain of links (resample, position, position) -> (resample, position).

    >>> linked_to_first(np.array([[[0, 1, 0], [1, 0, 0], [0, 0, 0]]], bool)).tolist()
    [[True, True, False]]
    """
    reached = np.zeros(links.shape[:2], bool)
    reached[:, 0] = True
    for _ in range(links.shape[1] - 1):
        reached |= (reached[:, :, None] & links).any(1)
    return reached
