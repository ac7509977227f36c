"""Propensities from comparisons of positions: entry [j, k] of a matrix counts clicks at rank j in its comparison with rank k.

Both sides of a comparison show the same items equally often, so E[j, k] / E[k, j] = propensity_j / propensity_k. There are three ways to
combine them into one curve: against the first rank only (pivot), from each rank to the next (adjacent), or all together (Bradley-Terry).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.models.base import ratio
from rankpolicy.clicks.position_bias.randomised import relative_to_first

MOST_STEPS, SMALL_STEP = 100, 1e-10


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
