"""Click tables (one row per item shown, its label 1 where it was clicked), weighted so that position bias cancels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankpolicy.clicks.learning.weights import Propensities, Weighting, check_weighting, click_weights, propensity_table
from rankpolicy.data.click_evidence import NO_CLICK, ClickEvidence, effective_sample_size
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.types import RankPolicyError


@checked_kinds
def weighted_by_propensity(
    dataset: RankingDataset, propensities: Propensities, *, by: Weighting = "query", clip: float | None = None
) -> RankingDataset:
    """A click table weighted so that position bias cancels, to fit, validate and evaluate rankers on.

    Queries without a click are left out; ``click_evidence`` counts them.

    Where queries have several clicks, the mean of their weights does not undo the bias of each. Then take by="item" for a loss that is
    linear in the labels, such as softmax, and ``one_click_each`` first for other losses and for metrics.

    Parameters
    ----------
    dataset
        A click table with the ranks at which items were shown, from ``read_click_table`` or ``from_click_table``.
    propensities
        How likely each rank is examined: a PositionBias, or numbers (position,), or (query, position) where queries differ.
        Propensities of 1 leave position bias in.
    by
        "query" (the default): a query weighs the mean of 1 / propensity over its clicked ranks (Wang et al. 2016), times the weight it had
        before; labels stay clicks. "item": labels become click / propensity of the rank, which are relevances.
    clip
        The largest weight. None (the default) clips nothing; clipping lowers variance and adds bias.

    >>> from rankpolicy.data.arrays import from_arrays
    >>> from rankpolicy.data.click_table.list_columns import Shown
    >>> lists = replace(from_arrays([[0.1], [0.2], [0.3]], [0, 1, 1], group=[2, 1]), shown_by_query=Shown(ranks=np.array([1, 2, 1])))
    >>> train = weighted_by_propensity(lists, np.array([1.0, 0.25]))
    >>> train, train.query_weights
    (RankingDataset(queries=2, items=3, features=1, clicks 0..1, weighted), array([4., 1.]))
    """
    check_weighting(by)
    table = propensity_table(propensities)
    ranks = None if dataset.shown_by_query is None else dataset.shown_by_query.ranks
    if ranks is None:
        raise RankPolicyError(
            "propensities belong to the ranks items were shown at, and this dataset has none: read it with read_click_table, or "
            "make it from a log, dataset_from_clicks(dataset, log, propensities)."
        )
    if dataset.label_kind == "relevances" or dataset.click_evidence is not None:
        raise RankPolicyError("the clicks of this dataset are weighted already: weight the click table as it was read.")
    if not ((dataset.labels_by_query == 0) | (dataset.labels_by_query == 1)).all():
        raise RankPolicyError(
            f"the labels of a click table must be clicks, 0 or 1; the highest here is {dataset.labels_by_query.max():g}."
        )
    items = np.flatnonzero(dataset.labels_by_query)
    if len(items) == 0:
        raise RankPolicyError("the click table must hold at least one click; it has none.")
    queries = dataset.query_numbers[items]
    of_clicks = click_weights(table, queries, ranks[items] - 1, np.ones(dataset.num_queries), by=by, clip=clip)
    has_click = np.bincount(queries, minlength=dataset.num_queries) > 0
    num_left_out = int((~has_click).sum())
    before = np.ones(dataset.num_queries) if dataset.query_weights is None else dataset.query_weights
    weights = before[of_clicks.sessions] * of_clicks.values
    evidence = ClickEvidence(
        weighted=by,
        num_sessions=int(has_click.sum()),
        num_clicks=len(items),
        effective_sample_size=effective_sample_size(weights),
        num_clipped=of_clicks.num_clipped,
        clipped_share=of_clicks.clipped_share,
        queries_left_out={NO_CLICK: num_left_out} if num_left_out else {},
    )
    if by == "query":
        return replace(dataset[has_click], query_weights=weights, label_kind="clicks", click_evidence=evidence)
    labels = np.zeros(dataset.num_items, np.float32)
    labels[items] = of_clicks.values
    relevances = replace(dataset, labels_by_query=labels, label_kind="relevances")[has_click]
    return replace(relevances, click_evidence=evidence)


@checked_kinds
def one_click_each(dataset: RankingDataset) -> RankingDataset:
    """A click table with one query per click: the list with this click alone. Queries without a click are left out.

    A query with several clicks has one weight, the mean of their inverse propensities, and one reciprocal rank, the best; items that are
    often clicked together with others, those near the top, then count too little or too much. With one query per click, the sum of
    RR / propensity is the sum over all items users would click had they examined them, however many clicks a session has.

    Parameters
    ----------
    dataset
        A click table, not weighted yet.

    >>> from rankpolicy.data.arrays import from_arrays
    >>> one_click_each(from_arrays([[0.1], [0.2], [0.3], [0.4]], [1, 1, 0, 0], group=[3, 1])).labels
    array([1., 0., 0., 0., 1., 0.], dtype=float32)
    """
    items = np.flatnonzero(dataset.labels_by_query)
    if len(items) == 0:
        raise RankPolicyError("the click table must hold at least one click; it has none.")
    queries = dataset.query_numbers[items]
    repeated = dataset[queries]
    labels = np.zeros(repeated.num_items, np.float32)
    labels[repeated.query_offsets[:-1] + items - dataset.query_offsets[queries]] = dataset.labels_by_query[items]
    return replace(repeated, labels_by_query=labels)
