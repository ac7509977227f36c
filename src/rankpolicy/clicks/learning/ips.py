"""Weights that undo position bias: a click at a rank that few examine stands for the clicks that were missed there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.learning.evidence import clipped_weights
from rankpolicy.clicks.log.click_log import NOT_SHOWN, ClickLog
from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class IPSWeights:
    """Inverse propensities, and how much they cost."""

    weights: NDArray[np.float64]  # (session, position), or (session,) for by="query"; 0 without a click
    effective_sample_size: float  # (sum of weights)^2 / sum of squared weights: as good as so many clicks of weight 1
    num_weights: int  # those above 0, sessions counted as often as they occurred
    num_clipped: int
    clipped_share: float  # of the sum of weights, what clipping took away


def ips_weights(
    clicks: ClickLog | NDArray[Any],
    propensities: PositionBias | NDArray[np.float64],
    *,
    by: Literal["item", "query"] = "item",
    clip: float | None = None,
) -> IPSWeights:
    """Inverse propensity weights of clicks (session, position), 0 or 1.

    - ``by="item"``: a click at rank k weighs 1 / propensity_k (Joachims, Swaminathan & Schnabel 2017);
    - ``by="query"``: the session weighs 1 / propensity of its clicked rank (Wang et al. 2016); with several clicks, their mean weight.

    ``propensities`` are (position,), or (session, position) where sessions differ. Nothing is clipped unless ``clip`` gives the largest
    weight; then how much that took away is told.

    >>> found = ips_weights(np.array([[1, 0], [0, 1]]), np.array([1.0, 0.25]), by="query")
    >>> found.weights.tolist(), round(found.effective_sample_size, 4)
    ([1.0, 4.0], 1.4706)
    """
    marks, counts = _marks(clicks)
    values = propensities.propensities if isinstance(propensities, PositionBias) else propensities
    inverse = marks / _checked(np.asarray(values, np.float64), marks)
    if by == "query":
        inverse = inverse.sum(1) / np.maximum(marks.sum(1), 1)
    elif by != "item":
        raise RankPolicyError(f"by must be 'item' or 'query'; got {by!r}.")
    if not inverse.any():
        raise RankPolicyError("clicks must hold at least one click; without any there is nothing to weigh.")
    repeats = np.broadcast_to(counts if by == "query" else counts[:, None], inverse.shape).ravel()
    found = clipped_weights(inverse.ravel(), repeats, clip=clip)
    return IPSWeights(
        weights=found.values.reshape(inverse.shape),
        effective_sample_size=found.effective_sample_size,
        num_weights=int(repeats @ (found.values > 0)),
        num_clipped=found.num_clipped,
        clipped_share=found.clipped_share,
    )


def _marks(clicks: ClickLog | NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    if isinstance(clicks, ClickLog):
        return (clicks.clicks * (clicks.items != NOT_SHOWN)).astype(np.float64), clicks.counts
    marks = np.asarray(clicks, np.float64)
    if marks.ndim != 2 or not ((marks == 0) | (marks == 1)).all():
        raise RankPolicyError(
            f"clicks must be 0 or 1 of shape (session, position), or a ClickLog; got shape {marks.shape}."
        )
    return marks, np.ones(len(marks), np.int64)


def _checked(propensities: NDArray[np.float64], marks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Propensities as (session, position), 1 where no click asks for them."""
    if propensities.shape not in (marks.shape, marks.shape[1:]):
        raise RankPolicyError(
            f"propensities must have the shape (position,), {marks.shape[1:]}, or that of the clicks, {marks.shape}; "
            f"got {propensities.shape}."
        )
    needed = np.where(marks > 0, propensities, 1.0)
    if np.isnan(needed).any():
        rank = int(np.isnan(needed).any(0).argmax()) + 1
        raise RankPolicyError(
            f"every clicked rank must have a propensity; rank {rank} has none. Cut the lists above it, or estimate it otherwise."
        )
    if not (needed > 0).all():
        raise RankPolicyError(f"propensities of clicked ranks must be above 0; got {needed.min():g}.")
    return needed
