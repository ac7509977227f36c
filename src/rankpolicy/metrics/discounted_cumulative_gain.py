"""Discounted cumulative gain."""

from __future__ import annotations

from torch import Tensor

from rankpolicy.metrics.ranked import ranked, skip_empty
from rankpolicy.types import Conventions


def dcg(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Discounted cumulative gain of each ranking (Järvelin & Kekäläinen 2002).

    DCG@c = sum over ranks r <= c of gain / log2(1 + r), gain = 2^label - 1 (or the label itself); padded items gain
    nothing. A query without relevant items has 0 whatever ``empty`` says, unless it is skipped.

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> dcg(tensor([[2, 0, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3))  # 7/1 + 0 + 1/2
    tensor([7.5000])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    gains = given.gains(conventions)
    return skip_empty((given.placed(gains) * given.discounts()).sum(-1), gains.sum(-1) > 0, conventions)
