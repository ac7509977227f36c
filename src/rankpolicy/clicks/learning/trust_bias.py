"""Trust bias: users click items at the top because they are at the top, even if they are not relevant."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.types import RankPolicyError


@checked_kinds
def affine_relevance(
    clicks: NDArray[Any], alpha: NDArray[np.float64], beta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Unbiased relevance estimates (session, position) from clicks with trust bias (Vardasbi, Oosterhuis & de Rijke 2020).

    Where P(click at rank k) = alpha_k relevance + beta_k, the mean of (click - beta_k) / alpha_k is the relevance. A single value may
    be below 0 or above 1; only means over sessions are meaningful.

    Parameters
    ----------
    clicks
        0 or 1 (session, position).
    alpha
        One number above 0 per rank (position,): the propensity.
    beta
        One number from 0 per rank (position,): the chance of a click on an irrelevant item. With 0 this is inverse propensity weighting.

    >>> affine_relevance(np.array([[1, 0]]), np.array([0.5, 0.25]), np.array([0.25, 0.0]))
    array([[1.5, 0. ]])
    """
    marks = np.asarray(clicks, np.float64)
    slopes, offsets = checked_trust(alpha, beta, marks.shape[-1])
    return (marks - offsets) / slopes


def checked_trust(alpha: Any, beta: Any, num_positions: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """alpha and beta as numbers (position,); anything else is refused."""
    slopes, offsets = np.asarray(alpha, np.float64), np.asarray(beta, np.float64)
    if slopes.shape != (num_positions,) or offsets.shape != (num_positions,):
        raise RankPolicyError(
            f"alpha and beta must have the shape (position,), ({num_positions},); got {slopes.shape} and {offsets.shape}."
        )
    if not ((slopes > 0).all() and (offsets >= 0).all()):
        raise RankPolicyError(
            f"alpha must be above 0 and beta 0 or more at every rank; got {slopes.min():g} and {offsets.min():g} at the least."
        )
    return slopes, offsets
