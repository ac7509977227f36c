"""Inverse propensity weights of clicks: computed, clipped and counted here for every way to learn from clicks; trust bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN, ClickLog
from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.data.click_evidence import effective_sample_size
from rankpolicy.declarations.arguments import as_float64, checked_kinds
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
