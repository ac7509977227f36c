"""Click tables, datasets whose labels are clicks on lists as they were shown, weighted so that position bias cancels."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from rankpolicy.clicks.learning.evidence import (
    ClickEvidence,
    Propensities,
    check_weighting,
    clipped_weights,
    inverse_propensities,
    propensity_table,
)
from rankpolicy.clicks.learning.from_log import NO_CLICK
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.query_weights import effective_sample_size
from rankpolicy.types import RankPolicyError


def weighted_by_propensity(
    dataset: RankingDataset,
    propensities: Propensities,
    *,
    by: Literal["item", "query"] = "query",
    clip: float | None = None,
) -> tuple[RankingDataset, ClickEvidence]:
    """A click table with weights against position bias, and what it rests on. Queries without a click are left out and counted.

    - ``by="query"``: a query counts by the inverse propensity of its clicked rank, their mean where several were clicked (Wang et al.
      2016), times the weight it may have already; labels stay;
    - ``by="item"``: labels become click / propensity of the rank.

    Where queries have several clicks, a mean of their weights does not undo the bias of each: then take by="item" for a loss that is linear
    in the labels, such as softmax, and ``one_click_each`` first for others and for metrics.

    ``propensities`` are (position,), or (query, position) where queries differ. ``clip`` is the largest weight; without it none is clipped.

    >>> from rankpolicy.data.dataset import from_arrays
    >>> from rankpolicy.data.click_table.shown import Shown
    >>> lists = replace(from_arrays([[0.1], [0.2], [0.3]], [0, 1, 1], group=[2, 1]), shown=Shown(ranks=np.array([1, 2, 1])))
    >>> weighted_by_propensity(lists, np.array([1.0, 0.25]))[0].query_weights
    array([4., 1.])
    """
    check_weighting(by)
    table = propensity_table(propensities)
    ranks = None if dataset.shown is None else dataset.shown.ranks
    if ranks is None:
        raise RankPolicyError(
            "propensities belong to the ranks items were shown at, which this dataset does not tell: read it with read_click_table, or "
            "give the log of clicks on it, clicks=."
        )
    if not ((dataset.labels == 0) | (dataset.labels == 1)).all():
        raise RankPolicyError(
            f"the labels of a click table must be clicks, 0 or 1; the highest here is {dataset.labels.max():g}."
        )
    items = np.flatnonzero(dataset.labels)
    if len(items) == 0:
        raise RankPolicyError("the click table must hold at least one click; it has none.")
    queries = dataset.query_of_item[items]
    inverse = inverse_propensities(table, queries, ranks[items] - 1, num_sessions=dataset.num_queries)
    num_clicks = np.bincount(queries, minlength=dataset.num_queries)
    kept = num_clicks > 0
    before = np.ones(dataset.num_queries) if dataset.query_weights is None else dataset.query_weights
    if by == "query":
        of_query = np.bincount(queries, inverse, dataset.num_queries)[kept] / num_clicks[kept]
        weights = clipped_weights(of_query, np.ones(len(of_query)), clip=clip)
        counted = before[kept] * weights.values
        learned = replace(dataset[kept], query_weights=counted)
    else:
        weights = clipped_weights(inverse, np.ones(len(inverse)), clip=clip)
        counted = before[queries] * weights.values
        labels = np.zeros(dataset.num_items, np.float32)
        labels[items] = weights.values
        learned = replace(dataset, labels=labels)[kept]
    num_left_out = int((~kept).sum())
    return learned, ClickEvidence(
        weighted=by,
        num_sessions=int(kept.sum()),
        num_clicks=len(items),
        effective_sample_size=effective_sample_size(counted),
        num_clipped=weights.num_clipped,
        clipped_share=weights.clipped_share,
        queries_left_out={NO_CLICK: num_left_out} if num_left_out else {},
    )


def one_click_each(dataset: RankingDataset) -> RankingDataset:
    """A query for every click of a click table: its list with this click alone. Queries without a click are left out.

    A query with several clicks has one weight, their mean inverse propensity, and one reciprocal rank, the best; items that often share
    their session's clicks, those near the top, so count too little or too much. A click at a time, the sum of RR / propensity is that of
    all items users would click had they examined them, however many clicks a session has.

    >>> from rankpolicy.data.dataset import from_arrays
    >>> one_click_each(from_arrays([[0.1], [0.2], [0.3], [0.4]], [1, 1, 0, 0], group=[3, 1])).labels
    array([1., 0., 0., 0., 1., 0.], dtype=float32)
    """
    items = np.flatnonzero(dataset.labels)
    if len(items) == 0:
        raise RankPolicyError("the click table must hold at least one click; it has none.")
    queries = dataset.query_of_item[items]
    repeated = dataset[queries]
    labels = np.zeros(repeated.num_items, np.float32)
    labels[repeated.offsets[:-1] + items - dataset.offsets[queries]] = dataset.labels[items]
    return replace(repeated, labels=labels)
