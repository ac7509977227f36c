"""Discounted cumulative gain, and as a share of the best one (nDCG)."""

from __future__ import annotations

import numpy as np

from rankpolicy.arrays import Array, is_tensor
from rankpolicy.kernels import codes
from rankpolicy.metrics.metric import AdditiveForm, Metric, metric_function
from rankpolicy.metrics.ranked import (
    JudgedItems,
    Ranked,
    check_exp2_gain,
    cut_weights,
    discounts,
    divide_by_ideal,
    fill_empty,
    skip_empty,
)
from rankpolicy.types import Conventions


@metric_function()
def dcg(lists: Ranked, *, cutoff: int | None, conventions: Conventions) -> Array:
    """Discounted cumulative gain of each ranking (Järvelin & Kekäläinen 2002).

    DCG@c = sum over ranks r <= c of gain / log2(1 + r), gain = 2^label - 1 (or the label itself); padded items have no gain. A query
    without relevant items has the value 0, or NaN with ``empty="skip"``; ``empty=1`` does not change it.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> dcg(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3)).round(4)  # 7/1 + 0 + 1/2
    array([7.5])
    """
    gains = lists.items.gains(conventions)
    return skip_empty((lists.placed(gains) * lists.discounts()).sum(-1), gains.sum(-1) > 0, conventions)


def _additive_dcg(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> AdditiveForm:
    """θ_k = 1 / log2(1 + k), ρ = gain."""
    gains = items.gains(conventions)
    return AdditiveForm(cut_weights(discounts(gains.shape[-1], like=gains), cutoff), gains)


DCG = Metric(
    name="dcg", function=dcg, reads="gains", additive=_additive_dcg, kernel_code=codes.DCG, check_labels=check_exp2_gain
)


@metric_function()
def ndcg(lists: Ranked, *, cutoff: int | None, conventions: Conventions) -> Array:
    """DCG of each ranking divided by the best DCG of its query (Järvelin & Kekäläinen 2002).

    nDCG@c = DCG@c / ideal, ideal = DCG@c of the query's items by descending label. The ideal includes every item of the query, also those
    that a prefix leaves out.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> ndcg(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3)).round(4)  # 7.5 / (7 + 1/log2(3))
    array([0.9828])
    """
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


def _ideal_dcg(gains: Array, cutoff: int | None) -> Array:
    """DCG@c of gains (query, item) in descending order (query,)."""
    if is_tensor(gains):
        best = gains.topk(min(cutoff or gains.shape[-1], gains.shape[-1]), dim=-1).values
    else:
        best = -np.sort(-gains, axis=-1)[:, :cutoff]
    return (best * discounts(best.shape[-1], like=gains)).sum(-1)


NDCG = Metric(
    name="ndcg",
    function=ndcg,
    reads="gains",
    additive=_additive_ndcg,
    kernel_code=codes.NDCG,
    check_labels=check_exp2_gain,
)
