"""Average rank of the relevant items."""

from __future__ import annotations

from rankpolicy.arrays import Array, clip
from rankpolicy.kernels.metrics import codes
from rankpolicy.metrics.metric import AdditiveForm, Metric, documented_metric
from rankpolicy.metrics.ranked import JudgedItems, divide_by_ideal, fill_empty, rank_numbers, ranked, ranks_of
from rankpolicy.types import Conventions


@documented_metric()
def avg_rank(
    rankings: Array,
    labels: Array,
    mask: Array,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
) -> Array:
    """Average rank of the relevant items of each query (Joachims 2002). Lower is better: as a reward write ``-avg_rank``.

    avg_rank@c = (1/R) sum over relevant items of min(rank, c + 1). Relevant items that a prefix of m < c positions leaves out have
    rank m + 1. A query without relevant items has the value of ``conventions.empty``.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> avg_rank(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3)).round(4)  # (1 + 3) / 2
    array([2.])
    """
    lists = ranked(rankings, labels, mask, cutoff=cutoff)
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
