"""Average precision."""

from __future__ import annotations

from rankpolicy.arrays import Array, namespace
from rankpolicy.kernels.metrics import codes
from rankpolicy.metrics.metric import CascadeForm, Metric, documented_metric
from rankpolicy.metrics.ranked import JudgedItems, cut_weights, divide_by_ideal, fill_empty, rank_numbers, ranked
from rankpolicy.types import Conventions


@documented_metric()
def ap(
    rankings: Array,
    labels: Array,
    mask: Array,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Array:
    """Average precision of each ranking (Buckley & Voorhees 2000); its mean over queries is MAP.

    AP@c = (1/R) sum over ranks r <= c that hold a relevant item of (relevant items up to r) / r. R counts all relevant items of the query,
    including those below the cutoff, as trec_eval's map and map_cut do.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> ap(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3)).round(4)  # (1/1 + 2/3) / 2
    array([0.8333])
    """
    lists = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = lists.items.relevant(conventions)
    num_relevant = relevant.sum(-1)
    hits = lists.placed(relevant)
    values = (hits * hits.cumsum(-1) / lists.ranks()).sum(-1)
    return fill_empty(divide_by_ideal(values, num_relevant), num_relevant > 0, conventions)


def _cascade(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> CascadeForm:
    """θ_k = 1/k, ρ = relevant / R; the factor c_k counts the relevant items above rank k, plus 1 for the item at k."""
    relevant, xp = items.relevant(conventions), namespace(items.labels)
    return CascadeForm(
        rank_weights=cut_weights(1 / rank_numbers(relevant.shape[-1], like=relevant), cutoff),
        item_values=divide_by_ideal(relevant, relevant.sum(-1, keepdims=True)),
        keep=xp.ones_like(relevant),
        add=relevant,
        constant=xp.zeros_like(relevant[:, 0]),
    )


AP = Metric(
    name="ap",
    function=ap,
    aliases=("map",),
    reads="relevance",
    cascade=_cascade,
    kernel_code=codes.AP,
)
