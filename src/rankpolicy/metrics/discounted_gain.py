"""Discounted cumulative gain, and as a share of the best one (nDCG)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.kernels.metrics import codes
from rankpolicy.metrics.metric import AdditiveForm, Metric, documented_metric
from rankpolicy.metrics.ranked import (
    JudgedItems,
    check_exp2_gain,
    cut_weights,
    discounts,
    divide_by_ideal,
    fill_empty,
    ranked,
    skip_empty,
)
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
    lists = ranked(rankings, labels, mask, cutoff=cutoff)
    gains = lists.items.gains(conventions)
    return skip_empty((lists.placed(gains) * lists.discounts()).sum(-1), gains.sum(-1) > 0, conventions)


def _additive_dcg(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> AdditiveForm:
    """θ_k = 1 / log2(1 + k), ρ = gain."""
    gains = items.gains(conventions)
    return AdditiveForm(cut_weights(discounts(gains.shape[-1], like=gains), cutoff), gains)


DCG = Metric(
    name="dcg", function=dcg, reads="gains", additive=_additive_dcg, kernel_code=codes.DCG, check_labels=check_exp2_gain
)


@documented_metric()
def ndcg(
    rankings: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Tensor:
    """DCG of each ranking divided by the best DCG of its query (Järvelin & Kekäläinen 2002).

    nDCG@c = DCG@c / ideal, ideal = DCG@c of the query's items by descending label. The ideal includes every item of the query, also those
    that a prefix leaves out.

    >>> from rankpolicy.metrics import all_items
    >>> from torch import tensor
    >>> ndcg(tensor([[2, 0, 1]]), tensor([[0.0, 1.0, 3.0]]), all_items(1, 3))  # 7.5 / (7 + 1/log2(3))
    tensor([0.9828])
    """
    lists = ranked(rankings, labels, mask, cutoff=cutoff)
    gains = lists.items.gains(conventions)
    ideal = _ideal_dcg(gains, cutoff)
    values = (lists.placed(gains) * lists.discounts()).sum(-1)
    return fill_empty(divide_by_ideal(values, ideal), ideal > 0, conventions)


def _additive_ndcg(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> AdditiveForm:
    """θ_k = 1 / log2(1 + k), ρ = gain / ideal."""
    gains = items.gains(conventions)
    return AdditiveForm(
        rank_weights=cut_weights(discounts(gains.shape[-1], like=gains), cutoff),
        item_values=divide_by_ideal(gains, _ideal_dcg(gains, cutoff)[:, None]),
    )


def _ideal_dcg(gains: Tensor, cutoff: int | None) -> Tensor:
    """DCG@c of gains (query, item) in descending order (query,)."""
    best = gains.topk(min(cutoff or gains.shape[-1], gains.shape[-1]), dim=-1).values
    return (best * discounts(best.shape[-1], like=gains)).sum(-1)


NDCG = Metric(
    name="ndcg",
    function=ndcg,
    reads="gains",
    additive=_additive_ndcg,
    kernel_code=codes.NDCG,
    check_labels=check_exp2_gain,
)
