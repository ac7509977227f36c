"""From a click log to a dataset to learn from: relevances or sessions, weighted so that position bias cancels."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.learning.evidence import (
    Array,
    ClickEvidence,
    Propensities,
    check_weighting,
    clipped_weights,
    inverse_propensities,
    propensity_table,
)
from rankpolicy.clicks.learning.matched_clicks import MatchedClicks
from rankpolicy.clicks.learning.robust_relevance import doubly_robust_relevance
from rankpolicy.clicks.learning.trust_bias import checked_trust
from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.distinct import distinct_rows, weighted_counts
from rankpolicy.clicks.models.base import ratio
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.types import RankPolicyError

_ROUNDING = 1e-12
NO_SESSION, NO_CLICK, NO_RELEVANCE = "not in the log", "no click", "no relevance above 0"
OTHER_QUERY = "query not in the dataset"


def dataset_from_clicks(
    dataset: RankingDataset,
    clicks: ClickLog,
    propensities: Propensities,
    *,
    by: Literal["item", "query"] = "item",
    clip: float | None = None,
    trust: Array | None = None,
    predicted: Array | None = None,
) -> tuple[RankingDataset, ClickEvidence]:
    """The dataset with labels and query weights from clicks on its items, and what they rest on; its own labels are not read.

    - ``by="item"``: labels are relevances, query weights the number of sessions of the query (Joachims, Swaminathan & Schnabel 2017):

          relevance of item i = sum over sessions of its query of click_i / propensity of its rank / number of sessions.

      The weighted mean of a loss or reward that is linear in the labels is then that over all sessions. Relevances may exceed 1, and are
      no grades: a reward that learns from them must have a linear gain, parse_metric("dcg", Conventions(gain="linear")).
      ``trust`` (position,) are the chances of a click that the rank alone earns: (click - trust_k) / propensity_k counts instead
      (Vardasbi, Oosterhuis & de Rijke 2020). ``predicted`` (items,) are relevances by a click model, corrected by the clicks they did not
      foresee (``doubly_robust_relevance``). Both can give estimates below 0, which are set to 0 and counted.
    - ``by="query"``: every session is a query, labels are its clicks, and its weight is the inverse propensity of the clicked rank, their
      mean where several were clicked (Wang et al. 2016). Equal ones are merged, their weights added up. For any metric.

    Queries and items are matched by ``query_ids`` and ``item_ids``. Sessions of other queries, and queries without a click, are left
    out and counted: they teach nothing about order, though a loss of single items, such as squared error, loses what they say of the
    level. ``clip`` is the largest weight of a click (of a session; with ``predicted``, of the inverse mean propensity of an item);
    nothing is clipped unless it is given.

    >>> from rankpolicy.clicks.log.click_log import log_from_lists
    >>> from rankpolicy.data.dataset import from_arrays
    >>> items = from_arrays([[0.1], [0.2]], qid=["a", "a"], item_ids=["x", "y"])
    >>> log = log_from_lists(["a", "a"], [["x", "y"], ["x", "y"]], [[1, 0], [0, 1]])
    >>> learned, evidence = dataset_from_clicks(items, log, np.array([1.0, 0.25]))
    >>> learned.labels, learned.query_weights, round(evidence.effective_sample_size, 4)
    (array([0.5, 2. ], dtype=float32), array([2.]), 1.4706)
    """
    check_weighting(by)
    matched = MatchedClicks.of(dataset, clicks)
    table = propensity_table(propensities)
    if table.ndim == 2:
        table = matched.rows_of_sessions(table, len(clicks))
    if by == "query":
        if trust is not None or predicted is not None:
            raise RankPolicyError("trust and predicted correct relevances of items: they need by='item'.")
        return _sessions(matched, table, clip)
    return _relevances(matched, table, clip, trust, predicted)


def _relevances(
    matched: MatchedClicks, table: Array, clip: float | None, trust: Array | None, predicted: Array | None
) -> tuple[RankingDataset, ClickEvidence]:
    dataset, counts = matched.dataset, matched.counts
    sessions_of_query = weighted_counts(matched.queries, counts.astype(np.float64), dataset.num_queries)
    sessions_of_item = np.repeat(sessions_of_query, dataset.sizes)
    counts_of_clicks = counts[matched.sessions]
    inverse = inverse_propensities(table, matched.sessions, matched.positions, num_sessions=len(counts))
    _check_has_clicks(inverse)
    if trust is None and predicted is None:
        weights = clipped_weights(inverse, counts_of_clicks, clip=clip)
        sums = weighted_counts(matched.items, counts_of_clicks * weights.values, dataset.num_items)
        estimates = ratio(sums, sessions_of_item)
    else:
        examined, extra = _of_positions(table, trust, matched.log.num_positions)
        found = matched.shown_and_clicked()
        if predicted is None:
            weights = clipped_weights(inverse, counts_of_clicks, clip=clip)
            of_ranks = clipped_weights(1 / examined, np.ones(len(examined)), clip=clip).values
            estimates = ratio((found.clicks - found.shown * extra) @ of_ranks, sessions_of_item)
        else:
            exposure = ratio(found.shown @ examined, sessions_of_item)
            weights = clipped_weights(1 / exposure[matched.items], counts_of_clicks, clip=clip)
            estimates = doubly_robust_relevance(
                found.shown,
                found.clicks,
                np.asarray(predicted, np.float64),
                propensities=examined,
                trust=extra,
                num_sessions=sessions_of_item,
                clip=None if clip is None else 1 / clip,
            )
    # What cancels but for rounding is no relevance, and not below 0 either.
    estimates = np.where(np.abs(estimates) < _ROUNDING, 0.0, estimates)
    labels = np.maximum(estimates, 0.0).astype(np.float32)
    has_session = sessions_of_query > 0
    has_relevance = np.maximum.reduceat(labels, dataset.offsets[:-1]) > 0
    kept = has_session & has_relevance
    if not kept.any():
        raise RankPolicyError("no item has a relevance above 0 after the correction; there is nothing to learn.")
    reason = NO_CLICK if trust is None and predicted is None else NO_RELEVANCE
    learned = replace(dataset, labels=labels, query_weights=sessions_of_query)[kept]
    return learned, ClickEvidence(
        weighted="item",
        num_sessions=int(counts.sum()),
        num_clicks=int(counts_of_clicks.sum()),
        effective_sample_size=weights.effective_sample_size,
        num_clipped=weights.num_clipped,
        clipped_share=weights.clipped_share,
        num_below_zero=int((estimates < 0).sum()),
        queries_left_out=_counted({NO_SESSION: ~has_session, reason: has_session & ~has_relevance}),
        sessions_left_out=_some({OTHER_QUERY: matched.num_sessions_elsewhere}),
    )


def _sessions(matched: MatchedClicks, table: Array, clip: float | None) -> tuple[RankingDataset, ClickEvidence]:
    dataset = matched.dataset
    inverse = inverse_propensities(table, matched.sessions, matched.positions, num_sessions=len(matched.kept))
    _check_has_clicks(inverse)
    clicked, place, num_clicks = np.unique(matched.sessions, return_inverse=True, return_counts=True)
    counts = matched.counts[clicked]
    weights = clipped_weights(np.bincount(place, inverse) / num_clicks, counts, clip=clip)
    # The clicked items of each session, in one order, as a row.
    order = np.lexsort((matched.items, place))
    column = np.arange(len(order)) - np.repeat(np.cumsum(num_clicks) - num_clicks, num_clicks)
    rows = np.full((len(clicked), num_clicks.max()), -1)
    rows[place[order], column] = matched.items[order]
    first, inverse_rows = distinct_rows(rows)
    totals = weighted_counts(inverse_rows, counts * weights.values, len(first))
    by_query = np.argsort(matched.queries[clicked[first]], kind="stable")
    first, totals = first[by_query], totals[by_query]
    queries = matched.queries[clicked[first]]
    learned = dataset[queries]
    labels = np.zeros(learned.num_items, np.float32)
    sessions, _ = np.nonzero(rows[first] >= 0)
    items = rows[first][rows[first] >= 0]
    labels[learned.offsets[sessions] + items - dataset.offsets[queries[sessions]]] = 1
    num_used = int(counts.sum())
    has_session = np.bincount(matched.queries, minlength=dataset.num_queries) > 0
    has_click = np.bincount(queries, minlength=dataset.num_queries) > 0
    return replace(learned, labels=labels, query_weights=totals), ClickEvidence(
        weighted="query",
        num_sessions=num_used,
        num_clicks=int(counts @ num_clicks),
        effective_sample_size=weights.effective_sample_size,
        num_clipped=weights.num_clipped,
        clipped_share=weights.clipped_share,
        queries_left_out=_counted({NO_SESSION: ~has_session, NO_CLICK: has_session & ~has_click}),
        sessions_left_out=_some(
            {OTHER_QUERY: matched.num_sessions_elsewhere, NO_CLICK: int(matched.counts.sum()) - num_used}
        ),
    )


def _of_positions(table: Array, trust: Array | None, num_positions: int) -> tuple[Array, Array]:
    if table.ndim == 2:
        raise RankPolicyError("trust and predicted need propensities of the shape (position,), the same for all.")
    if len(table) < num_positions:
        raise RankPolicyError(
            f"every rank needs a propensity here, clicked or not; the lists are {num_positions} long and there are {len(table)}."
        )
    extra = np.zeros(num_positions) if trust is None else np.asarray(trust, np.float64)
    if extra.ndim != 1 or len(extra) < num_positions:
        raise RankPolicyError(
            f"trust must have the shape (position,), a number for each of the {num_positions} ranks; got {extra.shape}."
        )
    extra = extra[:num_positions]
    return checked_trust(table[:num_positions], extra, num_positions)


def _check_has_clicks(inverse: Array) -> None:
    if len(inverse) == 0:
        raise RankPolicyError("the log must hold at least one click on the items of the dataset; it has none.")


def _counted(reasons: dict[str, NDArray[np.bool_]]) -> dict[str, int]:
    return _some({reason: int(holds.sum()) for reason, holds in reasons.items()})


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in counts.items() if count}
