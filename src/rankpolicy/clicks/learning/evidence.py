"""What a ranker that learned from clicks rests on: how many there were, and how many their weights leave them worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.data.query_weights import effective_sample_size
from rankpolicy.types import RankPolicyError

Array = NDArray[np.float64]
Propensities = PositionBias | NDArray[np.floating]  # (position,), or (session, position) where sessions differ
WEIGHTINGS = ("item", "query")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickEvidence:
    """Counts of what was used, and of what was not; sessions count as often as they occurred."""

    weighted: str  # a weight for each clicked "item", or one for the whole "query"
    num_sessions: int  # used, with a click or without
    num_clicks: int
    effective_sample_size: float  # (sum of weights)^2 / sum of squared weights: as good as so many of weight 1
    num_clipped: int = 0  # weights that ``clip`` lowered
    clipped_share: float = 0.0  # of the sum of weights, what clipping took away
    num_below_zero: int = 0  # labels that were estimated below 0 and set to 0
    queries_left_out: Mapping[str, int] = field(default_factory=dict)  # of the dataset, by reason
    sessions_left_out: Mapping[str, int] = field(default_factory=dict)  # of the log, by reason

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Inverse propensities of clicks or sessions, clipped where that was asked for."""

    values: Array  # (click,) or (session,)
    effective_sample_size: float
    num_clipped: int
    clipped_share: float


def clipped_weights(inverse: Array, counts: NDArray[Any], *, clip: float | None) -> Weights:
    """At most ``clip``; ``counts`` say how often each weight occurred.

    >>> found = clipped_weights(np.array([1.0, 4.0]), np.array([2, 1]), clip=2.0)
    >>> found.values.tolist(), round(found.effective_sample_size, 4), found.num_clipped, round(found.clipped_share, 4)
    ([1.0, 2.0], 2.6667, 1, 0.3333)
    """
    if clip is not None and not clip > 0:
        raise RankPolicyError(f"clip must be the largest weight, above 0; got {clip}.")
    values = inverse if clip is None else np.minimum(inverse, clip)
    total = float(counts @ values)
    return Weights(
        values=values,
        effective_sample_size=effective_sample_size(values, counts),
        num_clipped=int(counts @ (inverse > values)),
        clipped_share=1.0 - total / float(counts @ inverse),
    )


def propensity_table(propensities: Propensities | None) -> Array:
    """The numbers (position,) or (session, position); None is refused, so that nobody learns from biased clicks unawares."""
    if propensities is None:
        raise RankPolicyError(
            "clicks are biased by the rank items stood at: give propensities=, such as estimate_position_bias(log). "
            "To learn from clicks as they are, say so with propensities of 1: np.ones(num_positions)."
        )
    values = propensities.propensities if isinstance(propensities, PositionBias) else propensities
    try:
        table = np.asarray(values, np.float64)
    except (TypeError, ValueError):
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


def inverse_propensities(table: Array, sessions: NDArray[Any], positions: NDArray[Any], *, num_sessions: int) -> Array:
    """1 / propensity of clicks (click,), each given by its session and its position, counted from 0.

    >>> inverse_propensities(np.array([1.0, 0.5]), np.array([0, 3]), np.array([1, 0]), num_sessions=4)
    array([2., 1.])
    """
    if table.ndim == 2 and len(table) != num_sessions:
        raise RankPolicyError(
            f"propensities of sessions must have a row for each of the {num_sessions}; got {len(table)} rows."
        )
    if len(positions) and positions.max() >= table.shape[-1]:
        raise RankPolicyError(
            f"every clicked rank must have a propensity; rank {int(positions.max()) + 1} was clicked, and there are "
            f"{table.shape[-1]}. Estimate them for longer lists, or cut the lists."
        )
    found = table[positions] if table.ndim == 1 else table[sessions, positions]
    wrong = np.flatnonzero(~(found > 0) | ~np.isfinite(found))
    if len(wrong):
        raise RankPolicyError(
            f"every clicked rank must have a finite propensity above 0; rank {int(positions[wrong[0]]) + 1} has "
            f"{found[wrong[0]]:g}. Cut the lists above it, or estimate it otherwise."
        )
    return np.asarray(1.0 / found, np.float64)


def check_weighting(weighted: object) -> None:
    if weighted not in WEIGHTINGS:
        raise RankPolicyError(f"clicks are weighted by 'item' or by 'query'; got {weighted!r}.")
