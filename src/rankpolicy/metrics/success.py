"""Success."""

from __future__ import annotations

from torch import Tensor

from rankpolicy.metrics.ranked import fill_empty, ranked
from rankpolicy.types import Conventions


def success(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Whether a relevant item stands among the first c of each ranking.

    Success@c = 1 where a rank r <= c holds a relevant item, else 0; its mean is the share of queries that are served (trec_eval).

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> success(tensor([[0, 2, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3), cutoff=2)
    tensor([1.])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = given.relevant(conventions)
    return fill_empty(given.placed(relevant).amax(-1), relevant.sum(-1) > 0, conventions)
