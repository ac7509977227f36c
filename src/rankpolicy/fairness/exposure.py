"""Exposure, the probability that users look at an item, and merit, the exposure that it deserves up to a factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rankpolicy.arrays import (
    Array,
    alike,
    as_floats,
    as_like,
    called,
    is_tensor,
    namespace,
    no_values,
    resized,
    to_numpy,
)
from rankpolicy.kernels import can_read
from rankpolicy.policies.mixture import Mixture, ranking_exposure
from rankpolicy.types import RankPolicyError, unknown_name

PERSISTENCE = 0.8

# Bias of positions 1, 2, ... in float64.
POSITION_BIASES: dict[str, Callable[[Array], Array]] = {
    "log2": lambda positions: 1 / namespace(positions).log2(1 + positions),
    "inverse": lambda positions: 1 / positions,
    "geometric": lambda positions: PERSISTENCE ** (positions - 1),
}

MeritFunction = Callable[[Array], Array]

MERITS: dict[str, MeritFunction] = {
    "binary": lambda labels: as_like(labels >= 1, labels),
    "exp2": lambda labels: namespace(labels).exp2(labels) - 1,
    "identity": lambda labels: labels,
    "log1p": lambda labels: namespace(labels).log1p(labels),
    "sqrt": lambda labels: namespace(labels).sqrt(labels),
    "square": lambda labels: labels**2,
}


def position_bias(
    num_positions: int,
    *,
    kind: str | Sequence[float] | Array = "log2",
    dtype: Any = None,
    device: Any = None,
) -> Array:
    """The probability v_j that a user looks at position j (position,): 0 or more, never increasing, not normalised.

    Parameters
    ----------
    num_positions
        Length of the result.
    kind
        ``"log2"``: 1 / log2(1 + j), the discount of DCG (Singh & Joachims 2019); ``"inverse"``: 1 / j; ``"geometric"``: 0.8^(j - 1).
        A vector, such as a measured position bias, is checked and cut or filled up with 0.
    dtype, device
        Of the result: a tensor for a dtype or device of torch and for a tensor as ``kind``, otherwise an array, by default of float64.

    >>> position_bias(3).round(4)
    array([1.    , 0.6309, 0.5   ])
    >>> position_bias(3, kind=[1.0, 0.25])
    array([1.  , 0.25, 0.  ])
    """
    if num_positions < 1:
        raise RankPolicyError(f"num_positions must be 1 or more; got {num_positions}.")
    like = no_values(dtype=dtype, device=device, like=kind)
    xp = namespace(like)
    if isinstance(kind, str):
        if kind not in POSITION_BIASES:
            raise RankPolicyError(unknown_name("position bias", kind, POSITION_BIASES) + " Or give a vector.")
        positions = xp.arange(1, num_positions + 1, dtype=xp.float64, device=device)
        return as_like(POSITION_BIASES[kind](positions), like)
    weights = as_like(kind, like)
    is_bias = weights.ndim == 1 and xp.isfinite(weights).all() and (weights >= 0).all()
    if not is_bias or (weights[1:] > weights[:-1]).any():
        raise RankPolicyError(
            f"position bias must be a vector of finite numbers, 0 or more, that never increases; got {weights.tolist()!r:.80}. "
            "Sort it in descending order, or use kind='log2'."
        )
    return resized(weights, num_positions)


def sampled_exposure(rankings: Array, mask: Array, bias: Array) -> Array:
    """Mean exposure (query, item) over sampled rankings (sample, query, position).

    Unbiased for the exposure of the policy, but a disparity of it is too high: 10 samples of a uniform policy over 24 items with labels
    0 to 2 give an individual disparity of 0.015 where the truth is 0. Report disparities of exact exposures.

    Parameters
    ----------
    rankings
        Sampled rankings (sample, query, position).
    mask
        True at real items (query, item).
    bias
        Position bias (position,), 0 past its end.

    >>> import numpy as np
    >>> rankings, mask = np.array([[[0, 1]], [[0, 1]], [[0, 1]], [[1, 0]]]), np.ones((1, 2), bool)
    >>> sampled_exposure(rankings, mask, [1.0, 0.5])
    array([[0.875, 0.625]])
    """
    rankings, mask, bias = alike(rankings, mask, bias)
    if rankings.ndim != 3 or len(rankings) == 0:
        raise RankPolicyError(
            f"sampled rankings must be (sample, query, position) with a sample or more; got {tuple(rankings.shape)}."
        )
    return ranking_exposure(rankings, mask, bias).mean(0)


def mixture_exposure(rankings: Array, weights: Array, mask: Array, *, bias: Array) -> Array:
    """Exposure (query, item) of a mixture of rankings.

    Parameters
    ----------
    rankings
        (ranking, query, position).
    weights
        Probability of each ranking (ranking, query).
    mask
        True at real items (query, item).
    bias
        Position bias (position,), 0 past its end.
    """
    return Mixture(rankings, weights, mask).exposure(bias)


def merit_of(labels: Array, merit: str | MeritFunction = "identity") -> Array:
    """Merit of each item (query, item).

    Parameters
    ----------
    labels
        Grades (query, item). Padded items, whose label is 0, must get a merit too; disparities ignore it.
    merit
        ``"identity"``: the label itself; ``"exp2"``: 2^label - 1; ``"binary"``: 1 from label 1 on; ``"log1p"``: log(1 + label); or a
        function of the labels that keeps their shape.

    >>> merit_of([[0, 1, 3]], "exp2")
    array([[0., 1., 7.]])
    >>> merit_of([[0, 1, 3]], lambda labels: labels - 1)
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: merit must be finite and 0 or more; query 0, item 0 has label 0 and merit -1. Shift or clamp it.
    """
    if not callable(merit) and merit not in MERITS:
        raise RankPolicyError(unknown_name("merit", merit, MERITS) + " Or give a function of labels.")
    grades = as_floats(*alike(labels))
    xp = namespace(grades)
    values = called(merit, grades) if callable(merit) else MERITS[merit](grades)
    values = values if is_tensor(grades) else to_numpy(values)
    if values.shape != grades.shape:
        raise RankPolicyError(
            f"a merit function must keep the shape of labels, {tuple(grades.shape)}; it gave {tuple(values.shape)}."
        )
    wrong = ~(xp.isfinite(values) & (values >= 0))
    if can_read(wrong) and wrong.any():
        index = tuple(int(axis[0]) for axis in xp.nonzero(wrong))
        item = f"query {index[0]}, item {index[1]}" if len(index) == 2 else f"index {index}"
        raise RankPolicyError(
            f"merit must be finite and 0 or more; {item} has label {grades[index]:g} and merit {values[index]:g}. "
            "Shift or clamp it."
        )
    return values
