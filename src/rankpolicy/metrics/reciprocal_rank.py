"""Reciprocal rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.kernels.metrics import codes
from rankpolicy.metrics.forms import CascadeForm
from rankpolicy.metrics.metric import Metric, documented_metric
from rankpolicy.metrics.ranked import JudgedItems, cut_weights, fill_empty, rank_numbers, ranked
from rankpolicy.types import Conventions

if TYPE_CHECKING:
    from torch import Tensor


@documented_metric()
def rr(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Reciprocal rank of the first relevant item of each ranking (Voorhees 1999); its mean over queries is MRR.

    RR@c = 1 / r for the first rank r <= c that holds a relevant item, 0 where none does.

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> rr(tensor([[0, 2, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3))
    tensor([0.5000])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = given.items.relevant(conventions)
    return fill_empty((given.placed(relevant) / given.ranks()).amax(-1), relevant.sum(-1) > 0, conventions)


def _cascade(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> CascadeForm:
    """θ_k = 1/k, ρ = relevant; the factor c_k is 1 up to the first relevant item and 0 below it."""
    relevant = items.relevant(conventions)
    return CascadeForm(
        rank_weights=cut_weights(1 / rank_numbers(relevant.shape[-1], like=relevant), cutoff),
        item_values=relevant,
        keep=1 - relevant,
        add=relevant.new_zeros(relevant.shape),
        constant=relevant.new_zeros(len(relevant)),
    )


RR = Metric(
    name="rr",
    function=rr,
    aliases=("mrr",),
    reads="relevance",
    cascade=_cascade,
    kernel_code=codes.RR,
)
