"""Precision, recall and average precision: the relevant items among the first, as a share of the places or of all relevant items."""

from __future__ import annotations

from rankpolicy.arrays import Array, as_like, namespace
from rankpolicy.kernels import codes
from rankpolicy.metrics.metric import AdditiveForm, CascadeForm, Metric, metric_function
from rankpolicy.metrics.ranked import JudgedItems, Ranked, cut_weights, divide_by_ideal, fill_empty, rank_numbers
from rankpolicy.types import Conventions


@metric_function()
def p(lists: Ranked, *, cutoff: int | None, conventions: Conventions) -> Array:
    """Precision of each ranking: the share of relevant items among the first c.

    P@c = (relevant items at ranks <= c) / c, also where the query has fewer than c items (trec_eval). Without a cutoff the divisor is the
    number of items of the query.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> p(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3), cutoff=2).round(4)
    array([0.5])
    """
    relevant = lists.items.relevant(conventions)
    hits = lists.placed(relevant).sum(-1)
    values = divide_by_ideal(hits, as_like(lists.items.mask.sum(-1), hits)) if cutoff is None else hits / cutoff
    return fill_empty(values, relevant.sum(-1) > 0, conventions)


def _additive_precision(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> AdditiveForm:
    """θ_k = 1 up to the cutoff, ρ = relevant / c."""
    relevant = items.relevant(conventions)
    num_items = as_like(items.mask.sum(-1, keepdims=True), relevant)
    return AdditiveForm(
        rank_weights=cut_weights(namespace(relevant).ones_like(relevant[0]), cutoff),
        item_values=divide_by_ideal(relevant, num_items) if cutoff is None else relevant / cutoff,
    )


P = Metric(
    name="p", function=p, aliases=("precision",), reads="relevance", additive=_additive_precision, kernel_code=codes.P
)


@metric_function()
def recall(lists: Ranked, *, cutoff: int | None, conventions: Conventions) -> Array:
    """Recall of each ranking: the share of the query's relevant items found among the first c.

    recall@c = (relevant items at ranks <= c) / (relevant items of the query).

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> recall(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3), cutoff=1).round(4)
    array([0.5])
    """
    relevant = lists.items.relevant(conventions)
    num_relevant = relevant.sum(-1)
    return fill_empty(divide_by_ideal(lists.placed(relevant).sum(-1), num_relevant), num_relevant > 0, conventions)


def _additive_recall(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> AdditiveForm:
    """θ_k = 1 up to the cutoff, ρ = relevant / R."""
    relevant = items.relevant(conventions)
    return AdditiveForm(
        rank_weights=cut_weights(namespace(relevant).ones_like(relevant[0]), cutoff),
        item_values=divide_by_ideal(relevant, relevant.sum(-1, keepdims=True)),
    )


RECALL = Metric(
    name="recall",
    function=recall,
    aliases=("r",),
    reads="relevance",
    additive=_additive_recall,
    kernel_code=codes.RECALL,
)


@metric_function()
def ap(lists: Ranked, *, cutoff: int | None, conventions: Conventions) -> Array:
    """Average precision of each ranking (Buckley & Voorhees 2000); its mean over queries is MAP.

    AP@c = (1/R) sum over ranks r <= c that hold a relevant item of (relevant items up to r) / r. R counts all relevant items of the query,
    including those below the cutoff, as trec_eval's map and map_cut do.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> ap(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3)).round(4)  # (1/1 + 2/3) / 2
    array([0.8333])
    """
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
