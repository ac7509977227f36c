"""Rank-biased precision."""

from __future__ import annotations

from rankpolicy.arrays import Array
from rankpolicy.declarations.settings import Declaration
from rankpolicy.metrics.metric import AdditiveForm, Metric, check_range, documented_metric
from rankpolicy.metrics.ranked import JudgedItems, cut_weights, rank_numbers, ranked, skip_empty
from rankpolicy.types import Conventions

PERSISTENCE = Declaration(
    help="Probability of going on from one item to the next; the usual values are 0.5, 0.8 and 0.95.",
    at_least=0,
    below=1,
)


@documented_metric(persistence=PERSISTENCE)
def rbp(
    rankings: Array,
    labels: Array,
    mask: Array,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
    persistence: float = 0.8,
) -> Array:
    """Rank-biased precision of each ranking (Moffat & Zobel 2008).

    RBP@c = (1 - persistence) sum over ranks r <= c that hold a relevant item of persistence^(r - 1). A query without relevant items has
    the value 0, or NaN with ``empty="skip"``; ``empty=1`` does not change it.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> rbp(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3)).round(4)  # 0.2 (1 + 0.8^2)
    array([0.328])
    """
    lists = ranked(rankings, labels, mask, cutoff=cutoff)
    relevant = lists.items.relevant(conventions)
    weights = _rank_weights(lists.rankings.shape[-1], persistence, like=relevant)
    return skip_empty((lists.placed(relevant) * weights).sum(-1), relevant.sum(-1) > 0, conventions)


def _additive(
    items: JudgedItems, *, cutoff: int | None, conventions: Conventions, persistence: float = 0.8
) -> AdditiveForm:
    """θ_k = (1 - persistence) persistence^(k - 1), ρ = relevant."""
    relevant = items.relevant(conventions)
    return AdditiveForm(cut_weights(_rank_weights(relevant.shape[-1], persistence, like=relevant), cutoff), relevant)


def _rank_weights(num_positions: int, persistence: float, *, like: Array) -> Array:
    """(1 - persistence) persistence^(r - 1) for ranks r = 1, 2, ... (position,)."""
    check_range("persistence", persistence, PERSISTENCE)
    return (1 - persistence) * persistence ** (rank_numbers(num_positions, like=like) - 1)


RBP = Metric(
    name="rbp",
    function=rbp,
    reads="relevance",
    options={"persistence": PERSISTENCE},
    additive=_additive,
)
