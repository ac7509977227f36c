"""From a click log to a dataset to learn from: relevances or sessions, weighted so that position bias cancels.

Doubly robust relevance: the prediction of a click model, corrected by the clicks that it does not explain.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.learning.matched_clicks import MatchedClicks
from rankpolicy.clicks.learning.weights import (
    Array,
    ClickWeights,
    Propensities,
    Weighting,
    at_most,
    check_weighting,
    checked_trust,
    click_weights,
    clipped_weights,
    propensity_table,
)
from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.clicks.log.row_counts import distinct_rows, ratio, weighted_counts
from rankpolicy.data.click_evidence import NO_CLICK, NO_RELEVANCE, NO_SESSION, OTHER_QUERY, ClickEvidence
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.types import RankPolicyError


@checked_kinds
def doubly_robust_relevance(
    shown: NDArray[np.float64],
    clicks: NDArray[np.float64],
    predicted: NDArray[np.float64],
    *,
    propensities: NDArray[np.float64],
    trust: NDArray[np.float64] | None = None,
    num_sessions: NDArray[np.float64] | None = None,
    exposure: NDArray[np.float64] | None = None,
    clip: float | None = None,
) -> NDArray[np.float64]:
    """Relevance of each (query, item) pair (pair,) from counts and predictions (Oosterhuis 2022).

        predicted + [clicks - sum over ranks of shown_k (propensity_k predicted + trust_k)] / (num_sessions exposure)

    With neither ``exposure`` nor ``clip`` the prediction cancels where an item was shown, which leaves inverse propensity weighting.

    Parameters
    ----------
    shown
        Impressions of each pair at each rank (pair, position).
    clicks
        Clicks on each pair at each rank (pair, position).
    predicted
        Predicted relevance of each pair (pair,), on the scale of the propensities: where these are relative to the first rank, the
        attraction of a PBM times its examination of the first rank.
    propensities
        How likely each rank is examined (position,).
    trust
        Chance of a click that the rank alone earns (position,); 0 by default.
    num_sessions
        Sessions of the pair's query (pair,), whether they showed the item or not; by default its impressions.
    exposure
        Mean propensity that the logging policy gives each pair (pair,); by default the mean in the log, sum of shown_k propensity_k /
        num_sessions.
    clip
        The least exposure. Items that were hardly examined then keep their prediction instead of noise. None (the default): no clipping.

    >>> counts = np.array([[8.0, 2.0], [0.0, 0.0]]), np.array([[4.0, 1.0], [0.0, 0.0]])
    >>> doubly_robust_relevance(*counts, np.array([0.4, 0.7]), propensities=np.array([1.0, 0.5]), clip=0.1)
    array([0.55555556, 0.7       ])
    """
    num_pairs, num_positions = shown.shape
    examined, extra = checked_trust(propensities, np.zeros(num_positions) if trust is None else trust, num_positions)
    sessions = shown.sum(1) if num_sessions is None else np.asarray(num_sessions, np.float64)
    mean_exposure = ratio(shown @ examined, sessions) if exposure is None else np.asarray(exposure, np.float64)
    for name, values in (("predicted", predicted), ("num_sessions", sessions), ("exposure", mean_exposure)):
        _check_pairs(name, values, num_pairs)
    if clicks.shape != shown.shape or (clicks > shown).any():
        raise RankPolicyError("clicks must have the shape of shown, (pair, position), and not exceed it.")
    if clip is not None:
        if not clip > 0:
            raise RankPolicyError(f"clip must be the least exposure, above 0; got {clip}.")
        mean_exposure = np.maximum(mean_exposure, clip)
    expected_clicks = shown @ examined * predicted + shown @ extra
    return predicted + ratio(clicks.sum(1) - expected_clicks, sessions * mean_exposure)


def _check_pairs(name: str, values: Any, num_pairs: int) -> None:
    if np.shape(values) != (num_pairs,) or not np.isfinite(values).all() or np.min(values, initial=0.0) < 0:
        raise RankPolicyError(
            f"{name} must be finite numbers, 0 or more, one for each of the {num_pairs} pairs; got shape {np.shape(values)}."
        )


_ROUNDING = 1e-12


@checked_kinds
def dataset_from_clicks(
    dataset: RankingDataset,
    clicks: ClickLog,
    propensities: Propensities,
    *,
    by: Weighting = "item",
    clip: float | None = None,
    trust: Array | None = None,
    predicted: Array | None = None,
) -> RankingDataset:
    """The dataset with labels and query weights made from clicks on its items, so that position bias cancels.

    Fit any ranker that uses query weights on the result. Its ``label_kind`` says what the labels are, its ``click_evidence`` how
    many clicks they were made from. Queries and items are matched by ``query_ids`` and ``item_ids``. Sessions of other queries, and queries
    without a click, are left out and counted: they hold no information about order, though a loss over single items, such as squared error,
    then overestimates the mean relevance.

    Parameters
    ----------
    dataset
        Queries, items and their features or texts. Its own labels are not read.
    clicks
        The log: lists shown to users, and their clicks.
    propensities
        How likely each rank is examined: a PositionBias, such as ``estimate_position_bias(log)``, or numbers (position,), or
        (session, position) where sessions differ. Propensities of 1 leave position bias in.
    by
        - "item" (the default): labels are relevances, query weights the number of sessions of the query (Joachims, Swaminathan & Schnabel
          2017),

              relevance of item i = sum over sessions of its query of click_i / propensity of its rank / number of sessions.

          The weighted mean of a loss or reward that is linear in the labels is then its mean over sessions. Relevances may exceed 1;
          gains of dcg and ndcg are linear in them.
        - "query": every session is a query, its labels are its clicks, its weight is the mean of 1 / propensity over its clicked ranks
          (Wang et al. 2016). Equal sessions are merged and their weights added. For any metric.
    clip
        The largest weight of a click ("item") or session ("query"); with ``predicted``, the largest inverse of the mean propensity of an
        item. None (the default) clips nothing; clipping lowers variance and adds bias.
    trust
        Chance (position,) of a click that the rank alone earns. (click - trust_k) / propensity_k is then counted instead of
        click / propensity_k (Vardasbi, Oosterhuis & de Rijke 2020). For by="item".
    predicted
        Relevances (items,) predicted by a click model, in the order of the rows that the dataset was made from; they are corrected by the
        clicks that they do not explain (``doubly_robust_relevance``). For by="item". With ``trust`` or ``predicted`` estimates may be
        below 0; these are set to 0 and counted.

    >>> from rankpolicy.clicks.log.click_log import log_from_lists
    >>> from rankpolicy.data.arrays import from_arrays
    >>> items = from_arrays([[0.1], [0.2]], qid=["a", "a"], item_ids=["x", "y"])
    >>> log = log_from_lists(["a", "a"], [["x", "y"], ["x", "y"]], [[1, 0], [0, 1]])
    >>> train = dataset_from_clicks(items, log, np.array([1.0, 0.25]))
    >>> train.labels, train.label_kind, train.query_weights, round(train.click_evidence.effective_sample_size, 4)
    (array([0.5, 2. ], dtype=float32), 'relevances', array([2.]), 1.4706)
    """
    check_weighting(by)
    if dataset.query_weights is not None:
        raise RankPolicyError(
            "the dataset has query weights already, which those of the clicks would replace: pass it without weights."
        )
    matched = MatchedClicks.of(dataset, clicks)
    table = propensity_table(propensities)
    if table.ndim == 2:
        table = matched.rows_of_sessions(table, len(clicks))
    if len(matched.sessions) == 0:
        raise RankPolicyError("the log must hold at least one click on the items of the dataset; it has none.")
    if by == "query":
        if trust is not None or predicted is not None:
            raise RankPolicyError("trust and predicted correct relevances of items: they need by='item'.")
        return _sessions(matched, table, clip)
    return _relevances(matched, table, clip, trust, predicted)


def _relevances(
    matched: MatchedClicks, table: Array, clip: float | None, trust: Array | None, predicted: Array | None
) -> RankingDataset:
    dataset = matched.dataset
    sessions_of_query = weighted_counts(matched.queries, matched.counts.astype(np.float64), dataset.num_queries)
    sessions_of_item = np.repeat(sessions_of_query, dataset.sizes)
    weights = click_weights(table, matched.sessions, matched.positions, matched.counts, by="item", clip=clip)
    if trust is None and predicted is None:
        sums = weighted_counts(matched.items, weights.counts * weights.values, dataset.num_items)
        estimates = ratio(sums, sessions_of_item)
    else:
        examined, extra = _of_positions(table, trust, matched.log.num_positions)
        counts = matched.shown_and_clicked()
        if predicted is None:
            estimates = ratio((counts.clicks - counts.shown * extra) @ at_most(1 / examined, clip), sessions_of_item)
        else:
            exposure = ratio(counts.shown @ examined, sessions_of_item)
            weights = clipped_weights(1 / exposure[matched.items], matched.sessions, weights.counts, clip=clip)
            estimates = doubly_robust_relevance(
                counts.shown,
                counts.clicks,
                _by_query(np.asarray(predicted, np.float64), dataset),
                propensities=examined,
                trust=extra,
                num_sessions=sessions_of_item,
                clip=None if clip is None else 1 / clip,
            )
    # Terms that cancel up to rounding give 0, not a relevance, and not an estimate below 0.
    estimates = np.where(np.abs(estimates) < _ROUNDING, 0.0, estimates)
    labels = np.maximum(estimates, 0.0).astype(np.float32)
    has_session = sessions_of_query > 0
    has_relevance = np.maximum.reduceat(labels, dataset.query_offsets[:-1]) > 0
    is_used = has_session & has_relevance
    if not is_used.any():
        raise RankPolicyError("no item has a relevance above 0 after the correction; there is nothing to learn.")
    reason = NO_CLICK if trust is None and predicted is None else NO_RELEVANCE
    learned = replace(dataset, labels_by_query=labels, query_weights=sessions_of_query, label_kind="relevances")[
        is_used
    ]
    evidence = ClickEvidence(
        weighted="item",
        num_sessions=int(matched.counts.sum()),
        num_clicks=int(weights.counts.sum()),
        effective_sample_size=weights.effective_sample_size,
        num_clipped=weights.num_clipped,
        clipped_share=weights.clipped_share,
        num_below_zero=int((estimates < 0).sum()),
        queries_left_out=_counted({NO_SESSION: ~has_session, reason: has_session & ~has_relevance}),
        sessions_left_out=_above_zero({OTHER_QUERY: matched.num_sessions_elsewhere}),
    )
    return replace(learned, click_evidence=evidence)


def _sessions(matched: MatchedClicks, table: Array, clip: float | None) -> RankingDataset:
    weights = click_weights(table, matched.sessions, matched.positions, matched.counts, by="query", clip=clip)
    clicked = _clicked_items(matched)
    first, same_as = distinct_rows(clicked)
    totals = weighted_counts(same_as, weights.counts * weights.values, len(first))
    by_query = np.argsort(matched.queries[weights.sessions[first]], kind="stable")
    first, totals = first[by_query], totals[by_query]
    queries = matched.queries[weights.sessions[first]]
    learned = matched.dataset[queries]
    labels = np.zeros(learned.num_items, np.float32)
    sessions, _ = np.nonzero(clicked[first] >= 0)
    items = clicked[first][clicked[first] >= 0]
    labels[learned.query_offsets[sessions] + items - matched.dataset.query_offsets[queries[sessions]]] = 1
    return replace(
        learned,
        labels_by_query=labels,
        query_weights=totals,
        label_kind="clicks",
        click_evidence=_evidence_of_sessions(matched, weights, queries),
    )


def _clicked_items(matched: MatchedClicks) -> NDArray[np.int64]:
    """The clicked items of each session with a click, in ascending order; -1 fills rows of fewer clicks."""
    _, row_of_click, num_clicks = np.unique(matched.sessions, return_inverse=True, return_counts=True)
    order = np.lexsort((matched.items, row_of_click))
    column = np.arange(len(order)) - np.repeat(np.cumsum(num_clicks) - num_clicks, num_clicks)
    rows = np.full((len(num_clicks), num_clicks.max()), -1)
    rows[row_of_click[order], column] = matched.items[order]
    return rows


def _evidence_of_sessions(matched: MatchedClicks, weights: ClickWeights, queries: NDArray[np.int64]) -> ClickEvidence:
    num_queries = matched.dataset.num_queries
    has_session = np.bincount(matched.queries, minlength=num_queries) > 0
    has_click = np.bincount(queries, minlength=num_queries) > 0
    num_used = int(weights.counts.sum())
    return ClickEvidence(
        weighted="query",
        num_sessions=num_used,
        num_clicks=int(matched.counts[matched.sessions].sum()),
        effective_sample_size=weights.effective_sample_size,
        num_clipped=weights.num_clipped,
        clipped_share=weights.clipped_share,
        queries_left_out=_counted({NO_SESSION: ~has_session, NO_CLICK: has_session & ~has_click}),
        sessions_left_out=_above_zero(
            {OTHER_QUERY: matched.num_sessions_elsewhere, NO_CLICK: int(matched.counts.sum()) - num_used}
        ),
    )


def _by_query(predicted: Array, dataset: RankingDataset) -> Array:
    return dataset.in_query_order(predicted) if predicted.shape == (dataset.num_items,) else predicted


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


def _counted(reasons: dict[str, NDArray[np.bool_]]) -> dict[str, int]:
    return _above_zero({reason: int(holds.sum()) for reason, holds in reasons.items()})


def _above_zero(counts: dict[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in counts.items() if count}
