"""Inverse propensity weights in the shape of the clicks, for custom methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.learning.weights import Array, Propensities, Weighting, click_weights, propensity_table
from rankpolicy.clicks.log.click_log import NOT_SHOWN, ClickLog
from rankpolicy.declarations.arguments import as_float64, checked_kinds
from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class IPSWeights:
    """Inverse propensity weights of a table of clicks, and what they cost in sample size.

    Parameters
    ----------
    weights
        Shape (session, position), or (session,) for by="query"; 0 where nothing was clicked.
    effective_sample_size
        (sum of weights)^2 / sum of squared weights: the number of clicks of equal weight with the same variance.
    num_weights
        Number of weights above 0; a session counts as often as it occurred.
    num_clipped
        Number of weights that ``clip`` lowered.
    clipped_share
        Share of the sum of weights that clipping removed.
    """

    weights: Array
    effective_sample_size: float
    num_weights: int
    num_clipped: int
    clipped_share: float


@checked_kinds
def ips_weights(
    clicks: ClickLog | NDArray[Any], propensities: Propensities, *, by: Weighting = "item", clip: float | None = None
) -> IPSWeights:
    """Inverse propensity weights of clicks, in the shape of the clicks.

    ``dataset_from_clicks`` and ``weighted_by_propensity`` use the same weights; take them from here for a method of your own.

    Parameters
    ----------
    clicks
        A click log, or an array (session, position) of 0 and 1.
    propensities
        A PositionBias, or numbers (position,), or (session, position) where sessions differ.
    by
        "item": a click at rank k weighs 1 / propensity_k (Joachims, Swaminathan & Schnabel 2017). "query": a session weighs the mean of
        1 / propensity over its clicked ranks (Wang et al. 2016).
    clip
        The largest weight. None (the default) clips nothing; clipping lowers variance and adds bias.

    >>> found = ips_weights(np.array([[1, 0], [0, 1]]), np.array([1.0, 0.25]), by="query")
    >>> found.weights.tolist(), round(found.effective_sample_size, 4)
    ([1.0, 4.0], 1.4706)
    """
    marks, counts = _marks(clicks)
    sessions, positions = np.nonzero(marks)
    of_clicks = click_weights(propensity_table(propensities), sessions, positions, counts, by=by, clip=clip)
    weights = np.zeros(marks.shape if by == "item" else len(marks))
    weights[(sessions, positions) if by == "item" else of_clicks.sessions] = of_clicks.values
    return IPSWeights(
        weights=weights,
        effective_sample_size=of_clicks.effective_sample_size,
        num_weights=int(of_clicks.counts.sum()),
        num_clipped=of_clicks.num_clipped,
        clipped_share=of_clicks.clipped_share,
    )


def _marks(clicks: ClickLog | NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    if isinstance(clicks, ClickLog):
        return (clicks.clicks == 1) & (clicks.items != NOT_SHOWN), clicks.counts
    marks = as_float64("clicks", clicks)
    if marks.ndim != 2 or not ((marks == 0) | (marks == 1)).all():
        raise RankPolicyError(
            f"clicks must be 0 or 1 of shape (session, position), or a ClickLog; got shape {marks.shape}."
        )
    return marks == 1, np.ones(len(marks), np.int64)
