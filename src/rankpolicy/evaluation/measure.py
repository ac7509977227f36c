"""Metrics of every query, from a ranker or its scores, and their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.arrays import is_tensor, to_numpy
from rankpolicy.data.dataset import HAS_QUERIES, RankingDataset, check_has_labels
from rankpolicy.data.padding import Padding, queries_by_length, rows_of_queries
from rankpolicy.declarations.arguments import as_array, checked_kind
from rankpolicy.metrics.expression import RewardExpression, leaf_table, reward_for_labels
from rankpolicy.metrics.parse import as_reward, parse_metrics
from rankpolicy.types import Conventions, RankPolicyError, Reward

if TYPE_CHECKING:
    from rankpolicy.evaluation.table import MetricTable


class Scorer(Protocol):
    """Anything that gives a score to each item of a dataset, as every ranker does."""

    def predict(self, data: RankingDataset, /) -> Any:
        """Scores (items,), in the order of the rows that the dataset was made from, as ``data.features`` is."""
        ...


def evaluate(
    ranker_or_scores: Scorer | ArrayLike,
    dataset: Any,
    metrics: str | Sequence[object] = ("ndcg@10", "map"),
    *,
    y: str | ArrayLike | None = None,
    qid: str | ArrayLike | None = None,
    group: ArrayLike | None = None,
    conventions: Conventions = Conventions(),
) -> MetricTable:
    """Measure a ranker, or scores, on a dataset: the value of every metric for every query.

    Items are ranked by descending score. Equal scores do not flatter: the value is the mean over all orders of the items that have the same
    score (``Conventions(ties=...)`` has other rules), so that it does not depend on the order of the rows.

    Parameters
    ----------
    ranker_or_scores
        A fitted ranker, or any object with ``predict(dataset)``; or one score per item, in the order of the rows that the dataset was made
        from, as ``predict`` gives them. Higher scores rank first.
    dataset
        Queries, their items and labels: a RankingDataset; a matrix or frame of features, with ``y`` and ``qid`` as for ``fit``; a click
        table; or, to measure scores, their labels alone: ``evaluate(scores, y, qid=qid)``. Where a dataset has query weights the means
        are weighted: for a click table, "mrr" on ``weighted_by_propensity(test, bias)`` is the weighted MRR (Wang et al. 2016).
    metrics
        Metrics separated by commas (``"ndcg@10, map"``), or a list of names, metric functions (``rp.metrics.ndcg``) and functions of your
        own of (rankings, labels, mask). Metrics can be combined: ``"mean(ap, rr)"``. The default is ndcg@10 and map.
    y
        The label of each row of a matrix or frame, or the name of a column of the frame.
    qid
        The query id of each row, in any order, or the name of a column of the frame.
    group
        The number of rows of each query, instead of ``qid``, where the rows of a query follow one another.
    conventions
        Gain, value of queries without relevant items, threshold of relevance and highest grade. Change them to compare with numbers
        from other software: see ``Conventions``.

    Returns
    -------
    MetricTable
        Print it for means with 95% intervals; ``means`` is a dict; ``table["map"]`` has one value per query.

    >>> from rankpolicy.data.arrays import from_arrays
    >>> dataset = from_arrays([[0.0], [1.0], [2.0]], [0, 1, 3], group=[3])
    >>> evaluate([2.0, 1.0, 3.0], dataset, ["ndcg", "map"]).means  # ranking 2, 0, 1: 7.5 / 7.63 and (1/1 + 2/3) / 2
    {'ndcg': 0.98284..., 'map': 0.83333...}
    >>> evaluate([2.0, 1.0, 3.0], [0, 1, 3], "ndcg", qid=["a", "a", "a"]).means
    {'ndcg': 0.98284...}
    """
    from rankpolicy.evaluation.table import MetricTable

    dataset = _measured_dataset(ranker_or_scores, dataset, y, qid, group)
    checked_kind("conventions", conventions, Conventions)
    check_has_labels(dataset, "data to measure on")
    measures = _measures(metrics, conventions)
    for measure in measures:
        _check_reads_labels(measure, dataset)
    scores = ranker_or_scores.predict(dataset) if hasattr(ranker_or_scores, "predict") else ranker_or_scores
    flat = dataset.in_query_order(flat_scores(scores, dataset))
    return MetricTable(
        query_ids=dataset.query_ids,
        names=tuple(measure.name for measure in measures),
        values=evaluate_scores(flat, dataset, measures),
        conventions=conventions,
        query_weights=dataset.query_weights,
    )


def _measured_dataset(ranker_or_scores: Any, data: Any, y: Any, qid: Any, group: Any) -> RankingDataset:
    """The dataset that a user gave, or one made from rows with labels and queries."""
    from rankpolicy.data.click_table.table import from_click_table, is_click_table
    from rankpolicy.data.formats.frames import dataset_of_labels, dataset_of_rows, is_frame

    has_queries = qid is not None or group is not None
    is_clicks = is_frame(data) and is_click_table(data.columns)
    if isinstance(data, RankingDataset) or is_clicks:
        if y is not None or has_queries:
            raise RankPolicyError(HAS_QUERIES)
        return from_click_table(data) if is_clicks else data
    if not has_queries:
        raise RankPolicyError(
            f"dataset must be a RankingDataset; got {type(data).__name__}. Arrays: from_arrays(X, y, qid=qid), or "
            "evaluate(ranker, X, y=y, qid=qid) and evaluate(scores, y, qid=qid); y and qid may name columns of a frame."
        )
    if not hasattr(ranker_or_scores, "predict"):
        return dataset_of_labels(data, y, qid=qid, group=group)
    if y is None:
        raise RankPolicyError("evaluate needs labels: y=, one per row or the name of a column of the frame.")
    fitted = {name: getattr(ranker_or_scores, f"{name}_", None) for name in ("feature_names", "categories")}
    return dataset_of_rows(
        data, y, qid=qid, group=group, features=fitted["feature_names"], categorical=fitted["categories"] or ()
    )


def _check_reads_labels(measure: Reward, dataset: RankingDataset) -> None:
    if isinstance(measure, RewardExpression):
        measure.check_labels(dataset.labels_by_query)
    readable = reward_for_labels(measure, dataset.label_kind)
    if readable.conventions.gain != measure.conventions.gain:
        raise RankPolicyError(
            f"the labels are relevances estimated from clicks, in which gains are linear; {measure.name!r} has gain "
            f"{measure.conventions.gain!r}.",
            python="Pass conventions=Conventions(gain='linear').",
            command_line="Use --gain linear.",
        )


def evaluate_scores(
    scores: NDArray[np.floating], dataset: RankingDataset, measures: Sequence[Reward]
) -> NDArray[np.float64]:
    """Values (query, metric) of the rankings by descending score, ties resolved as the conventions of the measures say.

    Compiled kernels serve where they know the metrics, torch elsewhere.

    Parameters
    ----------
    scores
        One score per item (items,), query by query as the arrays of the dataset are.
    dataset
        Queries, their items and labels.
    measures
        Metrics and rewards, from ``parse_metrics`` or ``as_reward``.
    """
    values = np.empty((dataset.num_queries, len(measures)))
    untied: dict[str, NDArray[np.floating]] = {}
    by_kernel: dict[Conventions, tuple[list[int], list[RewardExpression]]] = {}
    for column, measure in enumerate(measures):
        rule = measure.conventions.ties
        if rule not in untied:
            untied[rule] = without_ties(scores, dataset, rule)
        if isinstance(measure, RewardExpression) and _kernels_know(measure):
            columns, expressions = by_kernel.setdefault(measure.conventions, ([], []))
            columns.append(column)
            expressions.append(measure)
        else:
            values[:, column] = values_by_reference(untied[rule], dataset, measure)
    for conventions, (columns, expressions) in by_kernel.items():
        values[:, columns] = values_by_kernel(untied[conventions.ties], dataset, expressions)
    return values


def mean_over_queries(values: NDArray[np.float64], query_weights: NDArray[np.float64] | None) -> float:
    """sum of weight * value / sum of weights over the queries whose value is not NaN; NaN where there are none.

    >>> mean_over_queries(np.array([1.0, 0.5, np.nan]), np.array([3.0, 1.0, 9.0]))
    0.875
    """
    counted = ~np.isnan(values)
    if query_weights is None:
        return float(values[counted].mean()) if counted.any() else math.nan
    total = float(query_weights[counted].sum())
    return float(query_weights[counted] @ values[counted]) / total if total else math.nan


def _kernels_know(measure: RewardExpression) -> bool:
    """Whether kernels compute all its metrics, and the reward in expectation over ties follows from these."""
    return measure.has_exact_expectation and leaf_table(measure.leaves) is not None


def without_ties(scores: NDArray[np.floating], dataset: RankingDataset, rule: str) -> NDArray[np.floating]:
    """Scores (items,) in which "worst" or "item_id" has ordered equal ones; "expected" leaves them as they are."""
    if rule == "expected":
        return scores
    if rule == "item_id" and dataset.item_ids_by_query is None:
        raise RankPolicyError(
            "ties='item_id' orders items with equal scores by their ids, and the data has no item ids. Name their column (item_id=), or "
            "use ties='expected'."
        )
    # Ascending, read from the end: trec_eval puts the item with the higher id first.
    last_first: Any = -dataset.labels_by_query if rule == "worst" else dataset.item_ids_by_query
    order = np.lexsort((last_first, scores, dataset.query_numbers))
    ordered = np.empty(dataset.num_items)
    ordered[order] = np.arange(dataset.num_items)
    return ordered


def values_by_kernel(
    scores: NDArray[np.floating], dataset: RankingDataset, expressions: Sequence[RewardExpression]
) -> NDArray[np.float64]:
    """Values (query, metric) of expressions that have the same conventions and whose metrics the kernel knows."""
    from rankpolicy.kernels.metrics.values import evaluate_queries, metric_terms

    conventions = expressions[0].conventions
    leaves = list(dict.fromkeys(leaf for expression in expressions for leaf in expression.leaves))
    table = leaf_table(leaves)
    assert table is not None
    for expression in expressions:
        expression.check_labels(dataset.labels_by_query)
    longest = int(dataset.sizes.max())
    terms = metric_terms(*table, np.ones(len(leaves)), conventions=conventions, num_positions=longest)
    leaf_values = evaluate_queries(
        scores.astype(np.float64, copy=False), dataset.labels_by_query, dataset.query_offsets, terms=terms
    )
    by_leaf = dict(zip(leaves, leaf_values.T, strict=True))
    return np.column_stack([expression.combine(by_leaf) for expression in expressions])


def values_by_reference(
    scores: NDArray[np.floating], dataset: RankingDataset, measure: Reward, *, cells_per_block: int = 1 << 21
) -> NDArray[np.float64]:
    """Values (query,) of any metric in expectation over ties, in blocks of queries of similar length to bound what padding takes."""
    from rankpolicy.metrics.ties import expected_value

    values = np.empty(dataset.num_queries)
    for queries in queries_by_length(dataset.sizes, most_cells=cells_per_block):
        items = rows_of_queries(dataset.query_offsets, queries)
        padding = Padding.of_sizes(dataset.sizes[queries])
        if not isinstance(measure, RewardExpression) and find_spec("torch"):
            padding = padding.to(
                "cpu"
            )  # functions of a user's own get tensors, as in training, where there are tensors
        padded_scores = padding.pad(scores[items].astype(np.float64))
        padded_labels = padding.pad(dataset.labels_by_query[items].astype(np.float64))
        values[queries] = to_numpy(expected_value(measure, padded_scores, padded_labels, padding.mask))
    return values


def _measures(metrics: str | Sequence[object], conventions: Conventions) -> list[Reward]:
    if isinstance(metrics, str):
        return list(parse_metrics(metrics, conventions))
    if not isinstance(metrics, Sequence):
        raise RankPolicyError(
            f"metrics must be a text such as 'ndcg@10, map' or a list of metrics; got {metrics!r:.80}."
        )
    measures = [as_reward(metric, conventions) for metric in metrics]
    if not measures:
        raise RankPolicyError("evaluate needs at least one metric, such as 'ndcg@10'; got none.")
    for measure in measures:
        if measure.conventions != conventions:
            raise RankPolicyError(
                f"all metrics of a table must follow its conventions, {conventions!r}; {measure.name!r} has "
                f"{measure.conventions!r}. Pass the same conventions to evaluate."
            )
    return measures


def flat_scores(scores: Any, dataset: RankingDataset) -> NDArray[np.floating]:
    """Scores (items,) as an array, if there is one finite or infinite number per item of the dataset."""
    array = to_numpy(scores) if is_tensor(scores) else as_array("scores", scores)  # a tensor, or array-like
    if array.shape != (dataset.num_items,):
        raise RankPolicyError(
            f"scores must have one value per item of the dataset, shape ({dataset.num_items},); got {array.shape}. "
            "Give them in the order of the rows that the dataset was made from, or give a ranker with predict(dataset)."
        )
    if array.dtype.kind not in "fiub":
        raise RankPolicyError(f"scores must be numbers; got {array.dtype} values.")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if np.isnan(array).any():
        missing = np.flatnonzero(np.isnan(array))
        query = dataset.in_row_order(dataset.query_ids[dataset.query_numbers])[missing[0]]
        raise RankPolicyError(
            f"scores must not be NaN; {len(missing)} of {len(array)} are, first at row {missing[0]} (query {query}). "
            "A ranker that returns NaN has diverged: lower its learning rate, or check its features."
        )
    return array
