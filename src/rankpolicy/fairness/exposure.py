"""Exposure, the probability that users look at an item, and merit, the exposure that it deserves up to a factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rankpolicy.kernels import can_read
from rankpolicy.policies.mixture import Mixture, ranking_exposure
from rankpolicy.types import RankPolicyError, unknown_name

PERSISTENCE = 0.8

# Bias of positions 1, 2, ... in float64.
POSITION_BIASES: dict[str, Callable[[Tensor], Tensor]] = {
    "log2": lambda positions: 1 / torch.log2(1 + positions),
    "inverse": lambda positions: 1 / positions,
    "geometric": lambda positions: PERSISTENCE ** (positions - 1),
}

MeritFunction = Callable[[Tensor], Tensor]

MERITS: dict[str, MeritFunction] = {
    "binary": lambda labels: (labels >= 1).to(labels.dtype),
    "exp2": lambda labels: torch.exp2(labels) - 1,
    "identity": lambda labels: labels,
    "log1p": torch.log1p,
    "sqrt": torch.sqrt,
    "square": torch.square,
}


def position_bias(
    num_positions: int,
    *,
    kind: str | Sequence[float] | Tensor = "log2",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """The probability v_j that a user looks at position j (position,): 0 or more, never increasing, not normalised.

    Parameters
    ----------
    num_positions
        Length of the result.
    kind
        ``"log2"``: 1 / log2(1 + j), the discount of DCG (Singh & Joachims 2019); ``"inverse"``: 1 / j; ``"geometric"``: 0.8^(j - 1).
        A vector, such as a measured position bias, is checked and cut or filled up with 0.
    dtype, device
        Of the result.

    >>> position_bias(3)
    tensor([1.0000, 0.6309, 0.5000])
    >>> position_bias(3, kind=[1.0, 0.25])
    tensor([1.0000, 0.2500, 0.0000])
    """
    if num_positions < 1:
        raise RankPolicyError(f"num_positions must be 1 or more; got {num_positions}.")
    if isinstance(kind, str):
        if kind not in POSITION_BIASES:
            raise RankPolicyError(unknown_name("position bias", kind, POSITION_BIASES) + " Or give a vector.")
        positions = torch.arange(1, num_positions + 1, dtype=torch.float64, device=device)
        return POSITION_BIASES[kind](positions).to(dtype)
    weights = torch.as_tensor(kind, dtype=dtype, device=device)
    if weights.ndim != 1 or not weights.isfinite().all() or (weights < 0).any() or (weights.diff() > 0).any():
        raise RankPolicyError(
            f"position bias must be a vector of finite numbers, 0 or more, that never increases; got {weights.tolist()!r:.80}. "
            "Sort it in descending order, or use kind='log2'."
        )
    cut = weights[:num_positions]
    return torch.nn.functional.pad(cut, (0, num_positions - len(cut)))


def sampled_exposure(rankings: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
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

    >>> rankings, mask = torch.tensor([[[0, 1]], [[0, 1]], [[0, 1]], [[1, 0]]]), torch.ones(1, 2, dtype=torch.bool)
    >>> sampled_exposure(rankings, mask, torch.tensor([1.0, 0.5]))
    tensor([[0.8750, 0.6250]])
    """
    if rankings.ndim != 3 or len(rankings) == 0:
        raise RankPolicyError(
            f"sampled rankings must be (sample, query, position) with a sample or more; got {tuple(rankings.shape)}."
        )
    return ranking_exposure(rankings, mask, bias).mean(0)


def mixture_exposure(rankings: Tensor, weights: Tensor, mask: Tensor, *, bias: Tensor) -> Tensor:
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


def merit_of(labels: Tensor, merit: str | MeritFunction = "identity") -> Tensor:
    """Merit of each item (query, item).

    Parameters
    ----------
    labels
        Grades (query, item). Padded items, whose label is 0, must get a merit too; disparities ignore it.
    merit
        ``"identity"``: the label itself; ``"exp2"``: 2^label - 1; ``"binary"``: 1 from label 1 on; ``"log1p"``: log(1 + label); or a
        function of the labels that keeps their shape.

    >>> merit_of(torch.tensor([[0, 1, 3]]), "exp2")
    tensor([[0., 1., 7.]])
    >>> merit_of(torch.tensor([[0, 1, 3]]), lambda labels: labels - 1)
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: merit must be finite and 0 or more; query 0, item 0 has label 0 and merit -1. Shift or clamp it.
    """
    if not callable(merit) and merit not in MERITS:
        raise RankPolicyError(unknown_name("merit", merit, MERITS) + " Or give a function of labels.")
    grades = labels if labels.is_floating_point() else labels.float()
    values = (merit if callable(merit) else MERITS[merit])(grades)
    if values.shape != grades.shape:
        raise RankPolicyError(
            f"a merit function must keep the shape of labels, {tuple(grades.shape)}; it gave {tuple(values.shape)}."
        )
    wrong = ~(values.isfinite() & (values >= 0))
    if can_read(wrong) and wrong.any():
        index = tuple(wrong.nonzero()[0].tolist())
        item = f"query {index[0]}, item {index[1]}" if len(index) == 2 else f"index {index}"
        raise RankPolicyError(
            f"merit must be finite and 0 or more; {item} has label {grades[index]:g} and merit {values[index]:g}. "
            "Shift or clamp it."
        )
    return values
