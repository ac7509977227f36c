"""Recall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.kernels.metrics import codes
from rankpolicy.metrics.forms import AdditiveForm
from rankpolicy.metrics.metric import Metric, documented_metric
from rankpolicy.metrics.ranked import JudgedItems, cut_weights, divide_by_ideal, fill_empty, ranked
from rankpolicy.types import Conventions

if TYPE_CHECKING:
    from torch import Tensor


@documented_metric()
def recall(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Recall of each ranking: the share of the query's relevant items found among the first c.

    recall@c = (relevant items at ranks <= c) / (relevant items of the query).

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> recall(tensor([[2, 0, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3), cutoff=1)
    tensor([0.5000])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = given.items.relevant(conventions)
    num_relevant = relevant.sum(-1)
    return fill_empty(divide_by_ideal(given.placed(relevant).sum(-1), num_relevant), num_relevant > 0, conventions)


def _additive(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> AdditiveForm:
    """θ_k = 1 up to the cutoff, ρ = relevant / R."""
    relevant = items.relevant(conventions)
    return AdditiveForm(
        rank_weights=cut_weights(relevant.new_ones(relevant.shape[-1]), cutoff),
        item_values=divide_by_ideal(relevant, relevant.sum(-1, keepdim=True)),
    )


RECALL = Metric(
    name="recall", function=recall, aliases=("r",), reads="relevance", additive=_additive, kernel_code=codes.RECALL
)
