"""Metrics of ranks of relevant items: reciprocal rank of the first, success (whether there is one), and the average rank of all."""

from __future__ import annotations

from rankpolicy.arrays import Array, clip, namespace
from rankpolicy.kernels import codes
from rankpolicy.metrics.metric import AdditiveForm, CascadeForm, Metric, metric_function
from rankpolicy.metrics.ranked import (
    JudgedItems,
    Ranked,
    cut_weights,
    divide_by_ideal,
    fill_empty,
    rank_numbers,
    ranks_of,
)
from rankpolicy.types import Conventions


@metric_function()
def rr(lists: Ranked, *, cutoff: int | None, conventions: Conventions) -> Array:
    """Reciprocal rank of the first relevant item of each ranking (Voorhees 1999); its mean over queries is MRR.

    RR@c = 1 / r for the first rank r <= c that holds a relevant item, 0 where none does.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> rr(array([[0, 2, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3)).round(4)
    array([0.5])
    """
    relevant = lists.items.relevant(conventions)
    return fill_empty(
        namespace(relevant).max(lists.placed(relevant) / lists.ranks(), axis=-1), relevant.sum(-1) > 0, conventions
    )


def _cascade_rr(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> CascadeForm:
    """θ_k = 1/k, ρ = relevant; the factor c_k is 1 up to the first relevant item and 0 below it."""
    relevant, xp = items.relevant(conventions), namespace(items.labels)
    return CascadeForm(
        rank_weights=cut_weights(1 / rank_numbers(relevant.shape[-1], like=relevant), cutoff),
        item_values=relevant,
        keep=1 - relevant,
        add=xp.zeros_like(relevant),
        constant=xp.zeros_like(relevant[:, 0]),
    )


RR = Metric(
    name="rr",
    function=rr,
    aliases=("mrr",),
    reads="relevance",
    cascade=_cascade_rr,
    kernel_code=codes.RR,
)


@metric_function()
def success(lists: Ranked, *, cutoff: int | None, conventions: Conventions) -> Array:
    """Whether a relevant item is among the first c of each ranking.

    success@c = 1 where a rank r <= c holds a relevant item, else 0; its mean over queries is the success rate (trec_eval).

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> success(array([[0, 2, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3), cutoff=2).round(4)
    array([1.])
    """
    relevant = lists.items.relevant(conventions)
    return fill_empty(namespace(relevant).max(lists.placed(relevant), axis=-1), relevant.sum(-1) > 0, conventions)


def _cascade_success(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> CascadeForm:
    """θ_k = 1 up to the cutoff, ρ = relevant; the factor c_k is 1 up to the first relevant item and 0 below it."""
    relevant, xp = items.relevant(conventions), namespace(items.labels)
    rank_weights = cut_weights(xp.ones_like(relevant[0]), cutoff)
    # Where every position counts, success is 1 for any order: a constant, which the weight of the last rank carries.
    last = rank_weights[-1]
    return CascadeForm(
        rank_weights=rank_weights - last,
        item_values=relevant,
        keep=1 - relevant,
        add=xp.zeros_like(relevant),
        constant=last * xp.max(relevant, axis=-1),
    )


SUCCESS = Metric(
    name="success",
    function=success,
    reads="relevance",
    cascade=_cascade_success,
    kernel_code=codes.SUCCESS,
)


@metric_function()
def avg_rank(lists: Ranked, *, cutoff: int | None, conventions: Conventions) -> Array:
    """Average rank of the relevant items of each query (Joachims 2002). Lower is better: as a reward write ``-avg_rank``.

    avg_rank@c = (1/R) sum over relevant items of min(rank, c + 1). Relevant items that a prefix of m < c positions leaves out have
    rank m + 1. A query without relevant items has the value of ``conventions.empty``.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> avg_rank(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3)).round(4)  # (1 + 3) / 2
    array([2.])
    """
    relevant = lists.items.relevant(conventions)
    num_relevant = relevant.sum(-1)
    ranks = ranks_of(lists.rankings, relevant.shape[-1])
    return fill_empty(divide_by_ideal((ranks * relevant).sum(-1), num_relevant), num_relevant > 0, conventions)


def _additive(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> AdditiveForm:
    """θ_k = min(k, c + 1), ρ = relevant / R."""
    relevant = items.relevant(conventions)
    ranks = rank_numbers(relevant.shape[-1], like=relevant)
    return AdditiveForm(
        rank_weights=ranks if cutoff is None else clip(ranks, high=cutoff + 1),
        item_values=divide_by_ideal(relevant, relevant.sum(-1, keepdims=True)),
    )


AVG_RANK = Metric(
    name="avg_rank",
    function=avg_rank,
    reads="relevance",
    lower_is_better=True,
    additive=_additive,
    kernel_code=codes.AVG_RANK,
)
