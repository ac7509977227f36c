"""Expected reciprocal rank."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.metrics.ranked import fill_empty, ranked
from rankpolicy.types import Conventions, RankPolicyError


def err(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Expected reciprocal rank of the item that satisfies a cascade user (Chapelle et al. 2009).

    ERR@c = sum over ranks r <= c of (1/r) stop_r prod over r' < r of (1 - stop_r'), stop = (2^label - 1) / 2^max_label.
    The gain convention does not change it.

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> err(tensor([[2, 0, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3))  # 7/16 + (1/3)(9/16)(1/16)
    tensor([0.4492])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    check_label_scale(float(given.labels.max()) if given.labels.numel() else 0.0, conventions)
    stops = given.placed((torch.exp2(given.labels) - 1) / 2**conventions.max_label)
    going_on = (1 - stops).cumprod(-1)
    reaching = torch.cat([torch.ones_like(going_on[..., :1]), going_on[..., :-1]], dim=-1)
    ranks = torch.arange(1, stops.shape[-1] + 1, dtype=stops.dtype, device=stops.device)
    return fill_empty((reaching * stops / ranks).sum(-1), given.labels.amax(-1) > 0, conventions)


def check_label_scale(highest: float, conventions: Conventions) -> None:
    """A label above max_label would stop the user with a probability of 1 or more."""
    if highest > conventions.max_label:
        raise RankPolicyError(
            f"err needs labels up to max_label, {conventions.max_label:g}; got {highest:g}. "
            f"Raise it: Conventions(max_label={highest:g}), on the command line --max-label {highest:g}."
        )
