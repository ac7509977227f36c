"""Discounted cumulative gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.kernels.metrics import codes
from rankpolicy.metrics.forms import AdditiveForm
from rankpolicy.metrics.metric import Metric, documented_metric
from rankpolicy.metrics.ranked import JudgedItems, check_exp2_gain, cut_weights, discounts, ranked, skip_empty
from rankpolicy.types import Conventions

if TYPE_CHECKING:
    from torch import Tensor


@documented_metric()
def dcg(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """Discounted cumulative gain of each ranking (Järvelin & Kekäläinen 2002).

    DCG@c = sum over ranks r <= c of gain / log2(1 + r), gain = 2^label - 1 (or the label itself); padded items have no gain. A query
    without relevant items has the value 0, or NaN with ``empty="skip"``; ``empty=1`` does not change it.

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> dcg(tensor([[2, 0, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3))  # 7/1 + 0 + 1/2
    tensor([7.5000])
    """
    given = ranked(rankings, labels, mask, cutoff=cutoff)
    gains = given.items.gains(conventions)
    return skip_empty((given.placed(gains) * given.discounts()).sum(-1), gains.sum(-1) > 0, conventions)


def _additive(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> AdditiveForm:
    """θ_k = 1 / log2(1 + k), ρ = gain."""
    gains = items.gains(conventions)
    return AdditiveForm(cut_weights(discounts(gains.shape[-1], like=gains), cutoff), gains)


DCG = Metric(
    name="dcg", function=dcg, reads="gains", additive=_additive, kernel_code=codes.DCG, check_labels=check_exp2_gain
)
