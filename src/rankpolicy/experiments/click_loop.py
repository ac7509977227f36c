"""From a click log and features of the items to a ranker, with an estimate of the clicks that it would add."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN, ClickLog
from rankpolicy.clicks.log.log_pairs import PairTable, pairs_of
from rankpolicy.clicks.log.row_counts import ratio
from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.clicks.models.fit import fit_click_model
from rankpolicy.clicks.models.judgments import judgments_of
from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.clicks.position_bias.estimate import estimate_position_bias
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.rankers.base import Ranker
from rankpolicy.types import RankPolicyError

MOST_WEIGHT = (
    10.0  # of a click: one that was examined less often than a tenth as often as the first rank counts no more
)
NUM_FOLDS, NUM_RESAMPLES = 5, 2_000
_MAX_RATING = 4.0
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryChange:
    """What changes for a query: clicks as they were and as expected, over all its sessions; the first item before and after."""

    query: str
    sessions: int
    clicks: float
    expected: float
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Uplift:
    """Clicks that a ranker is expected to add, estimated for queries that it had not seen.

    Parameters
    ----------
    clicks, expected
        Clicks per session as logged, and expected of the new order.
    difference, relative
        Mean and interval of the difference per session, and of it relative to the clicks logged.
    level
        Level of the intervals, by a bootstrap over queries.
    num_sessions, num_queries
        What the estimate is made from.
    first_changed
        Share of sessions whose first item changes.
    num_clipped
        Clicks whose weight was cut at MOST_WEIGHT.
    queries
        What changes for each query that was clicked, the largest loss first.
    """

    clicks: float
    expected: float
    difference: tuple[float, float, float]
    relative: tuple[float, float, float]
    level: float
    num_sessions: int
    num_queries: int
    first_changed: float
    num_clipped: int
    queries: tuple[QueryChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickLoop:
    """What was learned from a log.

    Parameters
    ----------
    ranker
        Fitted on the judgments of all queries.
    model
        The click model behind the judgments.
    judgments
        The judgments as a document (``judgments_of``).
    bias
        The position bias.
    is_bias_measured
        Whether the log determines it; otherwise it is the examination of a position-based click model.
    uplift
        The expected uplift.
    num_judged_queries
        Queries that the ranker learned from: those with features and a click.
    sessions_left_out
        Sessions of queries without features.
    """

    ranker: Ranker
    model: ClickModel
    judgments: dict[str, Any]
    bias: PositionBias
    is_bias_measured: bool
    uplift: Uplift
    num_judged_queries: int
    sessions_left_out: int


def learn_from_log(
    items: RankingDataset,
    log: ClickLog,
    ranker: Ranker,
    *,
    click_model: str = "dcm",
    bias_method: str = "all-pairs",
    random_state: int = 0,
) -> ClickLoop:
    """Fit a ranker to judgments made from clicks, and estimate the uplift on queries that it had not seen.

    The estimate: each click moves with its item to the new rank and counts examined(new rank) / examined(old rank). It holds if users
    examine ranks whatever is shown there, and counts items that were shown only, so that the order of the first page is judged and nothing
    else. For each fifth of the queries the ranker is fitted to the judgments of the others.

    Parameters
    ----------
    items
        Items and their features, with ``query_ids`` and ``item_ids`` as the log has them; labels are not read.
    log
        What was shown and clicked.
    ranker
        An unfitted ranker, which is fitted here.
    click_model
        The click model of the judgments.
    bias_method
        How position bias is estimated; where the log cannot tell, the examination of a position-based click model is taken.
    random_state
        Seed of folds and resamples.
    """
    model = fit_click_model(click_model, log, prior="empirical")
    judgments = judgments_of(model, clicked_in=log, max_rating=_MAX_RATING)
    judged = _judged(items, log, judgments)
    bias, is_measured = _bias(log, bias_method, random_state)
    rng = np.random.default_rng(random_state)
    folds = rng.permutation(judged.num_queries) % NUM_FOLDS
    has_label = np.maximum.reduceat(judged.labels_by_query, judged.query_offsets[:-1]) > 0
    scores = np.empty(judged.num_items)
    row_fold = np.repeat(folds, judged.sizes)
    for fold in range(NUM_FOLDS):
        train, test = np.flatnonzero((folds != fold) & has_label), np.flatnonzero(folds == fold)
        if len(train) == 0 or len(test) == 0:
            raise RankPolicyError(_too_few(int(has_label.sum())))
        held_out = judged[test]
        fitted = _fresh(ranker).fit(judged[train], progress=False)
        scores[row_fold == fold] = held_out.in_query_order(fitted.predict(held_out))
    uplift, left_out = _uplift(judged, log, scores, _propensities(bias), rng)
    ranker.fit(judged[np.flatnonzero(has_label)], progress=False)
    return ClickLoop(
        ranker=ranker,
        model=model,
        judgments=judgments,
        bias=bias,
        is_bias_measured=is_measured,
        uplift=uplift,
        num_judged_queries=int(has_label.sum()),
        sessions_left_out=left_out,
    )


def _judged(items: RankingDataset, log: ClickLog, judgments: dict[str, Any]) -> RankingDataset:
    """The queries of the log that have features, with ratings as labels; an item that was never shown is rated 0."""
    if items.item_ids_by_query is None:
        raise RankPolicyError(
            "the items must have ids, as the log names them: a column item_id.",
            command_line="Name another column with --item-id.",
            python="Name another column: read_dataset(path, item_id=...).",
        )
    sessions = dict(zip(log.query_names, np.bincount(log.queries, log.counts, len(log.query_names)), strict=True))
    query_ids = items.query_ids.astype(str)
    in_log = np.flatnonzero([name in sessions for name in query_ids.tolist()])
    if len(in_log) == 0:
        raise RankPolicyError(
            "the queries of the items must be those of the log, by their texts; none is. "
            f"The log begins with {log.query_names[0]!r}, the items with {query_ids[0]!r}."
        )
    matched = items[in_log]
    ratings = {
        (query["query"], rated["docId"]): float(rated["rating"])
        for query in judgments["judgmentRatings"]
        for rated in query["ratings"]
    }
    names = np.repeat(query_ids[in_log], matched.sizes).tolist()
    pairs = zip(names, _ids(matched), strict=True)
    labels = np.array([ratings.get(pair, 0.0) for pair in pairs], np.float32)
    num_clicked = int((np.maximum.reduceat(labels, matched.query_offsets[:-1]) > 0).sum())
    if num_clicked < 2:
        raise RankPolicyError(_too_few(num_clicked))
    weights = np.array([sessions[name] for name in query_ids[in_log].tolist()], np.float64)
    return replace(matched, labels_by_query=labels, query_weights=weights, label_kind="relevances")


def _too_few(number: int) -> str:
    return f"the log must have clicks on items of at least two queries with features, more to learn anything; it has them on {number}."


def _ids(items: RankingDataset) -> list[str]:
    assert items.item_ids_by_query is not None
    names: list[str] = items.item_ids_by_query.astype(str).tolist()
    return names


def _fresh(ranker: Ranker) -> Ranker:
    return type(ranker)().set_params(**ranker.get_params(deep=False))


def _bias(log: ClickLog, method: str, random_state: int) -> tuple[PositionBias, bool]:
    """The position bias, and whether the log determines it."""
    try:
        return estimate_position_bias(log, method=method, num_resamples=200, random_state=random_state), True
    except RankPolicyError:
        pass
    examined = fit_click_model("pbm", log, prior="empirical").examination(log)
    shown = log.counts @ (log.items != NOT_SHOWN)
    return PositionBias(
        method="pbm, not measured",
        propensities=examined / examined[0],
        intervals=np.full((len(examined), 2), np.nan),
        level=0.95,
        resampled="sessions",
        num_resamples=0,
        click_through=(log.counts @ log.clicks) / shown,
        num_sessions=log.num_sessions,
        num_clicks=log.num_clicks,
        num_swap_pairs=0,
    ), False


def _propensities(bias: PositionBias) -> Array:
    """A propensity for every rank: one that is not known is that of the rank above, and none is below 1 / MOST_WEIGHT."""
    known = np.maximum.accumulate(np.where(np.isnan(bias.propensities), 0, np.arange(len(bias.propensities))))
    return np.maximum(bias.propensities[known], 1 / MOST_WEIGHT)


def _uplift(
    judged: RankingDataset, log: ClickLog, scores: Array, propensities: Array, rng: np.random.Generator
) -> tuple[Uplift, int]:
    """The expected uplift of lists sorted by these scores (item,) in the order of the queries, and the sessions left out."""
    pairs = pairs_of(log)
    known_queries = set(judged.query_ids.astype(str).tolist())
    is_used = np.array([name in known_queries for name in log.query_names])[log.queries]
    used = log.of_sessions(np.flatnonzero(is_used))
    view = pairs.view(used)
    score_of_pair = np.append(_scores_of_pairs(judged, pairs, scores), -np.inf)
    is_shown = used.items != NOT_SHOWN
    order = np.argsort(np.where(is_shown, -score_of_pair[view.pairs], np.inf), axis=1, kind="stable")
    # An item without features has -inf and goes below those with features; what is not shown stays last, because the sort is stable.
    ranks = np.argsort(order, axis=1)
    weights = np.minimum(propensities[ranks] / propensities[: is_shown.shape[1]], MOST_WEIGHT)
    is_cut = (weights >= MOST_WEIGHT) & (used.clicks > 0)
    size = len(log.query_names)
    before, after = (
        np.bincount(used.queries, used.counts * values.sum(1), size).astype(np.float64)
        for values in (used.clicks, used.clicks * weights)
    )
    sessions = np.bincount(used.queries, used.counts, size).astype(np.float64)
    queries = np.flatnonzero(sessions)
    resamples = rng.multinomial(len(queries), np.full(len(queries), 1 / len(queries)), size=NUM_RESAMPLES)
    drawn: Array = resamples @ np.column_stack([sessions, before, after])[queries]
    level = 0.95
    return Uplift(
        clicks=before.sum() / sessions.sum(),
        expected=after.sum() / sessions.sum(),
        difference=_interval((after - before).sum() / sessions.sum(), (drawn[:, 2] - drawn[:, 1]) / drawn[:, 0], level),
        relative=_interval(after.sum() / before.sum() - 1, ratio(drawn[:, 2], drawn[:, 1]) - 1, level),
        level=level,
        num_sessions=int(sessions.sum()),
        num_queries=len(queries),
        first_changed=float(used.counts @ (order[:, 0] != 0) / used.counts.sum()),
        num_clipped=int((used.counts @ is_cut).sum()),
        queries=_changes(used, order, sessions, before, after),
    ), int(log.num_sessions - used.num_sessions)


def _interval(value: float, drawn: Array, level: float) -> tuple[float, float, float]:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(value), float(low), float(high)


def _scores_of_pairs(judged: RankingDataset, pairs: PairTable, scores: Array) -> Array:
    names = np.repeat(judged.query_ids.astype(str), judged.sizes).tolist()
    score_of = dict(zip(zip(names, _ids(judged), strict=True), scores.tolist(), strict=True))
    return np.array(
        [
            score_of.get((pairs.query_names[query], pairs.item_names[item]), -np.inf)
            for query, item in zip(pairs.queries, pairs.items, strict=True)
        ]
    )


def _changes(
    log: ClickLog, order: NDArray[np.int64], sessions: Array, before: Array, after: Array
) -> tuple[QueryChange, ...]:
    """What changes for each query with a click, by its last session; the largest loss first."""
    last = {query: row for row, query in enumerate(log.queries.tolist())}

    return tuple(
        QueryChange(
            query=log.query_names[query],
            sessions=int(sessions[query]),
            clicks=float(before[query]),
            expected=float(after[query]),
            before=log.item_names[log.items[last[query], 0]],
            after=log.item_names[log.items[last[query], order[last[query], 0]]],
        )
        for query in sorted(last, key=lambda query: after[query] - before[query])
        if before[query] > 0
    )
