"""Metrics of users who stop: expected reciprocal rank and rank-biased precision."""

from __future__ import annotations

import math

from rankpolicy.arrays import Array, namespace
from rankpolicy.declarations.settings import Declaration
from rankpolicy.kernels import codes
from rankpolicy.metrics.metric import AdditiveForm, CascadeForm, Metric, check_range, metric_function
from rankpolicy.metrics.ranked import JudgedItems, Ranked, cut_weights, fill_empty, rank_numbers, skip_empty
from rankpolicy.types import Conventions, RankPolicyError


@metric_function()
def err(lists: Ranked, *, cutoff: int | None, conventions: Conventions) -> Array:
    """Expected reciprocal rank of the item that satisfies a user who reads from the top (Chapelle et al. 2009).

    ERR@c = sum over ranks r <= c of (1/r) stop_r prod over r' < r of (1 - stop_r'), stop = (2^label - 1) / 2^max_label. It does not depend
    on ``conventions.gain``.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> err(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3)).round(4)  # 7/16 + (1/3)(9/16)(1/16)
    array([0.4492])
    """
    stops = lists.placed(_stops(lists.items, conventions))
    xp = namespace(stops)
    reaching = xp.concat([xp.ones_like(stops[..., :1]), (1 - stops).cumprod(-1)[..., :-1]], axis=-1)
    values = (reaching * stops / lists.ranks()).sum(-1)
    return fill_empty(values, xp.max(lists.items.labels, axis=-1) > 0, conventions)


def _cascade(items: JudgedItems, *, cutoff: int | None, conventions: Conventions) -> CascadeForm:
    """θ_k = 1/k, ρ = stop; the factor c_k is the probability that no item above satisfies the user."""
    stops, xp = _stops(items, conventions), namespace(items.labels)
    return CascadeForm(
        rank_weights=cut_weights(1 / rank_numbers(stops.shape[-1], like=stops), cutoff),
        item_values=stops,
        keep=1 - stops,
        add=xp.zeros_like(stops),
        constant=xp.zeros_like(stops[:, 0]),
    )


def _stops(items: JudgedItems, conventions: Conventions) -> Array:
    """Probability that an item satisfies a user who looks at it (query, item)."""
    _check_labels(float(items.labels.max()) if math.prod(items.labels.shape) else 0.0, conventions)
    return (namespace(items.labels).exp2(items.labels) - 1) / 2**conventions.max_label


def _check_labels(highest: float, conventions: Conventions) -> None:
    """Refuse a label above max_label, which would stop the user with a probability of 1 or more."""
    if highest > conventions.max_label:
        raise RankPolicyError(
            f"err needs labels up to max_label, {conventions.max_label:g}; got {highest:g}. "
            f"Raise it: Conventions(max_label={highest:g}), on the command line --max-label {highest:g}."
        )


ERR = Metric(
    name="err",
    function=err,
    reads="grades",
    cascade=_cascade,
    kernel_code=codes.ERR,
    check_labels=_check_labels,
)


PERSISTENCE = Declaration(
    help="Probability of going on from one item to the next; the usual values are 0.5, 0.8 and 0.95.",
    at_least=0,
    below=1,
)


@metric_function(persistence=PERSISTENCE)
def rbp(lists: Ranked, *, cutoff: int | None, conventions: Conventions, persistence: float = 0.8) -> Array:
    """Rank-biased precision of each ranking (Moffat & Zobel 2008).

    RBP@c = (1 - persistence) sum over ranks r <= c that hold a relevant item of persistence^(r - 1). A query without relevant items has
    the value 0, or NaN with ``empty="skip"``; ``empty=1`` does not change it.

    >>> from rankpolicy.metrics import all_items
    >>> from numpy import array
    >>> rbp(array([[2, 0, 1]]), array([[0.0, 1.0, 3.0]]), all_items(1, 3)).round(4)  # 0.2 (1 + 0.8^2)
    array([0.328])
    """
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
