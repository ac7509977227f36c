"""Doubly robust relevance: the prediction of a click model, corrected by the clicks that it does not explain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.learning.weights import checked_trust
from rankpolicy.clicks.log.row_counts import ratio
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.types import RankPolicyError


@checked_kinds
def doubly_robust_relevance(
    shown: NDArray[np.float64],
    clicks: NDArray[np.float64],
    predicted: NDArray[np.float64],
    *,
    propensities: NDArray[np.float64],
    trust: NDArray[np.float64] | None = None,
    num_sessions: NDArray[np.float64] | None = None,
    exposure: NDArray[np.float64] | None = None,
    clip: float | None = None,
) -> NDArray[np.float64]:
    """Relevance of each (query, item) pair (pair,) from counts and predictions (Oosterhuis 2022).

        predicted + [clicks - sum over ranks of shown_k (propensity_k predicted + trust_k)] / (num_sessions exposure)

    With neither ``exposure`` nor ``clip`` the prediction cancels where an item was shown, which leaves inverse propensity weighting.

    Parameters
    ----------
    shown
        Impressions of each pair at each rank (pair, position).
    clicks
        Clicks on each pair at each rank (pair, position).
    predicted
        Predicted relevance of each pair (pair,), on the scale of the propensities: where these are relative to the first rank, the
        attraction of a PBM times its examination of the first rank.
    propensities
        How likely each rank is examined (position,).
    trust
        Chance of a click that the rank alone earns (position,); 0 by default.
    num_sessions
        Sessions of the pair's query (pair,), whether they showed the item or not; by default its impressions.
    exposure
        Mean propensity that the logging policy gives each pair (pair,); by default the mean in the log, sum of shown_k propensity_k /
        num_sessions.
    clip
        The least exposure. Items that were hardly examined then keep their prediction instead of noise. None (the default): no clipping.

    >>> counts = np.array([[8.0, 2.0], [0.0, 0.0]]), np.array([[4.0, 1.0], [0.0, 0.0]])
    >>> doubly_robust_relevance(*counts, np.array([0.4, 0.7]), propensities=np.array([1.0, 0.5]), clip=0.1)
    array([0.55555556, 0.7       ])
    """
    num_pairs, num_positions = shown.shape
    examined, extra = checked_trust(propensities, np.zeros(num_positions) if trust is None else trust, num_positions)
    sessions = shown.sum(1) if num_sessions is None else np.asarray(num_sessions, np.float64)
    mean_exposure = ratio(shown @ examined, sessions) if exposure is None else np.asarray(exposure, np.float64)
    for name, values in (("predicted", predicted), ("num_sessions", sessions), ("exposure", mean_exposure)):
        _check_pairs(name, values, num_pairs)
    if clicks.shape != shown.shape or (clicks > shown).any():
        raise RankPolicyError("clicks must have the shape of shown, (pair, position), and not exceed it.")
    if clip is not None:
        if not clip > 0:
            raise RankPolicyError(f"clip must be the least exposure, above 0; got {clip}.")
        mean_exposure = np.maximum(mean_exposure, clip)
    expected_clicks = shown @ examined * predicted + shown @ extra
    return predicted + ratio(clicks.sum(1) - expected_clicks, sessions * mean_exposure)


def _check_pairs(name: str, values: Any, num_pairs: int) -> None:
    if np.shape(values) != (num_pairs,) or not np.isfinite(values).all() or np.min(values, initial=0.0) < 0:
        raise RankPolicyError(
            f"{name} must be finite numbers, 0 or more, one for each of the {num_pairs} pairs; got shape {np.shape(values)}."
        )
