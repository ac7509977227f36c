"""Merit: the exposure that an item deserves, as a function of its label, up to a factor."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rankpolicy.kernels import can_read
from rankpolicy.types import RankPolicyError, unknown_name

MeritFunction = Callable[[Tensor], Tensor]

MERITS: dict[str, MeritFunction] = {
    "binary": lambda labels: (labels >= 1).to(labels.dtype),
    "exp2": lambda labels: torch.exp2(labels) - 1,
    "identity": lambda labels: labels,
    "log1p": torch.log1p,
}


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
    given = labels if labels.is_floating_point() else labels.float()
    values = _function(merit)(given)
    if values.shape != given.shape:
        raise RankPolicyError(
            f"a merit function must keep the shape of labels, {tuple(given.shape)}; it gave {tuple(values.shape)}."
        )
    wrong = ~(values.isfinite() & (values >= 0))
    if can_read(wrong) and wrong.any():
        where = tuple(wrong.nonzero()[0].tolist())
        place = f"query {where[0]}, item {where[1]}" if len(where) == 2 else f"index {where}"
        raise RankPolicyError(
            f"merit must be finite and 0 or more; {place} has label {given[where]:g} and merit {values[where]:g}. "
            "Shift or clamp it."
        )
    return values


def _function(merit: str | MeritFunction) -> MeritFunction:
    if callable(merit):
        return merit
    if merit not in MERITS:
        raise RankPolicyError(unknown_name("merit", merit, MERITS) + " Or give a function of labels.")
    return MERITS[merit]
