"""Inverse propensity weights of clicks: computed, clipped and counted here for every way to learn from clicks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.data.click_evidence import effective_sample_size
from rankpolicy.types import RankPolicyError

Array = NDArray[np.float64]
Propensities = PositionBias | NDArray[np.floating]  # (position,), or (session, position) where sessions differ
Weighting = Literal["item", "query"]
WEIGHTINGS = ("item", "query")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickWeights:
    """Weights of single clicks (by="item") or of the sessions with a click (by="query")."""

    values: Array  # (click,) or (session with a click,)
    sessions: NDArray[np.intp]  # the session each weight belongs to
    counts: NDArray[Any]  # how often each weight occurred
    effective_sample_size: float
    num_clipped: int
    clipped_share: float


def click_weights(
    table: Array,
    sessions: NDArray[np.intp],
    positions: NDArray[np.intp],
    counts: NDArray[Any],
    *,
    by: str,
    clip: float | None,
) -> ClickWeights:
    """Inverse propensity weights of clicks, each given by its session and its position (from 0).

    - by="item": 1 / propensity of the clicked rank (Joachims, Swaminathan & Schnabel 2017);
    - by="query": the mean of these over the clicks of the session (Wang et al. 2016).

    ``table`` are the propensities (position,) or (session, position); ``counts`` (session,) say how often each session occurred; ``clip``
    is the largest weight.

    >>> found = click_weights(np.array([1.0, 0.25]), np.array([0, 1]), np.array([0, 1]), np.array([2, 1]), by="item", clip=2.0)
    >>> found.values.tolist(), round(found.effective_sample_size, 4), found.num_clipped, round(found.clipped_share, 4)
    ([1.0, 2.0], 2.6667, 1, 0.3333)
    """
    check_weighting(by)
    if len(sessions) == 0:
        raise RankPolicyError("the clicks must hold at least one click; there is none, so there is nothing to weight.")
    inverse = inverse_propensities(table, sessions, positions, num_sessions=len(counts))
    if by == "query":
        sessions, session_index, num_clicks = np.unique(sessions, return_inverse=True, return_counts=True)
        inverse = np.bincount(session_index, inverse) / num_clicks
    return clipped_weights(inverse, sessions, counts[sessions], clip=clip)


def clipped_weights(
    inverse: Array, sessions: NDArray[np.intp], counts: NDArray[Any], *, clip: float | None
) -> ClickWeights:
    """The weights, at most ``clip``; ``counts`` say how often each weight occurred."""
    values = at_most(inverse, clip)
    total = float(counts @ values)
    return ClickWeights(
        values=values,
        sessions=sessions,
        counts=counts,
        effective_sample_size=effective_sample_size(values, counts),
        num_clipped=int(counts @ (inverse > values)),
        clipped_share=1.0 - total / float(counts @ inverse),
    )


def at_most(inverse: Array, clip: float | None) -> Array:
    """The inverse propensities, none above ``clip``."""
    if clip is not None and not clip > 0:
        raise RankPolicyError(f"clip must be the largest weight, above 0; got {clip}.")
    return inverse if clip is None else np.minimum(inverse, clip)


def inverse_propensities(table: Array, sessions: NDArray[Any], positions: NDArray[Any], *, num_sessions: int) -> Array:
    """1 / propensity of each click (click,), given its session and its position (from 0).

    >>> inverse_propensities(np.array([1.0, 0.5]), np.array([0, 3]), np.array([1, 0]), num_sessions=4)
    array([2., 1.])
    """
    if table.ndim == 2 and len(table) != num_sessions:
        raise RankPolicyError(
            f"propensities of sessions must have one row for each of the {num_sessions}; got {len(table)} rows."
        )
    if len(positions) and positions.max() >= table.shape[-1]:
        raise RankPolicyError(
            f"every clicked rank must have a propensity; rank {int(positions.max()) + 1} was clicked, and there are "
            f"{table.shape[-1]}. Estimate them for longer lists, or cut the lists."
        )
    of_clicks = table[positions] if table.ndim == 1 else table[sessions, positions]
    wrong = np.flatnonzero(~(of_clicks > 0) | ~np.isfinite(of_clicks))
    if len(wrong):
        raise RankPolicyError(
            f"every clicked rank must have a finite propensity above 0; rank {int(positions[wrong[0]]) + 1} has "
            f"{of_clicks[wrong[0]]:g}. Cut the lists above it, or estimate it otherwise."
        )
    return np.asarray(1.0 / of_clicks, np.float64)


def propensity_table(propensities: Propensities | None) -> Array:
    """The numbers (position,) or (session, position). None is refused, so that nobody learns from biased clicks by accident."""
    if propensities is None:
        raise RankPolicyError(
            "clicks are biased by the rank at which items were shown: give propensities, such as estimate_position_bias(log). "
            "To learn from clicks as they are, say so with propensities of 1: np.ones(num_positions)."
        )
    values = propensities.propensities if isinstance(propensities, PositionBias) else propensities
    try:
        table = np.asarray(values, np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise RankPolicyError(
            f"propensities must be a PositionBias or numbers; got {type(propensities).__name__} {propensities!r:.60}. "
            "A bias.json is read with read_position_bias(path)."
        ) from None
    if table.ndim not in (1, 2) or table.size == 0:
        raise RankPolicyError(
            "propensities must be a PositionBias or numbers of the shape (position,) or (session, position); "
            f"got shape {table.shape}."
        )
    return table


def check_weighting(by: object) -> None:
    """Refuse anything but "item" and "query"."""
    if by not in WEIGHTINGS:
        raise RankPolicyError(f"clicks are weighted by 'item' or by 'query'; got {by!r}.")
