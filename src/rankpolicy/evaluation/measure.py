"""From a ranker, or its scores, to the metrics of every query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.padding import Padding
from rankpolicy.evaluation.table import MetricTable
from rankpolicy.metrics import CustomReward, RewardExpression, as_reward, parse_metrics, rank_by_score
from rankpolicy.metrics.expected_reciprocal_rank import check_label_scale
from rankpolicy.metrics.term_table import leaf_table
from rankpolicy.types import Conventions, RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.clicks.learning.evidence import Propensities

Measure = RewardExpression | CustomReward


class Scorer(Protocol):
    """Anything that scores the items of a dataset."""

    def predict(self, data: RankingDataset, /) -> Any:
        """Flat scores (items,) in dataset order."""
        ...


def evaluate(
    ranker_or_scores: Scorer | ArrayLike,
    dataset: RankingDataset,
    metrics: str | Sequence[object] = ("ndcg@10", "map"),
    *,
    conventions: Conventions = Conventions(),
    propensities: Propensities | None = None,
) -> MetricTable:
    """Metrics of the rankings by falling score; equal scores keep the item order of the dataset.

    The first argument is a ranker or flat scores (items,) in dataset order. Means count queries by the weights the dataset has. For a
    click table, ``propensities`` weigh each query by the inverse propensity of its clicked rank (Wang et al. 2016), so that "mrr" is the
    weighted MRR; queries without a click then do not count.

    >>> from rankpolicy.data.dataset import from_arrays
    >>> dataset = from_arrays([[0.0], [1.0], [2.0]], [0, 1, 3], group=[3])
    >>> evaluate([2.0, 1.0, 3.0], dataset, ["ndcg", "map"]).means  # ranking 2, 0, 1: 7.5 / 7.63 and (1/1 + 2/3) / 2
    {'ndcg': 0.98284..., 'map': 0.83333...}
    """
    if not isinstance(dataset, RankingDataset):
        raise RankPolicyError(
            f"dataset must be a RankingDataset; got {type(dataset).__name__}. Arrays: from_arrays(X, y, qid=qid)."
        )
    measures = _measures(metrics, conventions)
    scores = ranker_or_scores.predict(dataset) if hasattr(ranker_or_scores, "predict") else ranker_or_scores
    return MetricTable(
        query_ids=dataset.query_ids,
        names=tuple(measure.name for measure in measures),
        values=evaluate_scores(_flat_scores(scores, dataset), dataset, measures),
        conventions=conventions,
        query_weights=dataset.query_weights if propensities is None else _weights_of_clicks(dataset, propensities),
    )


def _weights_of_clicks(dataset: RankingDataset, propensities: Propensities) -> NDArray[np.float64]:
    from rankpolicy.clicks.learning.from_table import weighted_by_propensity

    if dataset.query_weights is not None:
        raise RankPolicyError("the dataset has query weights already: evaluate it without propensities.")
    weights = np.zeros(dataset.num_queries)
    weighted, _ = weighted_by_propensity(dataset, propensities)
    weights[dataset.has_relevant_items()] = weighted.query_weights
    return weights


def evaluate_scores(
    scores: NDArray[np.floating], dataset: RankingDataset, measures: Sequence[Measure]
) -> NDArray[np.float64]:
    """Values (query, metric) of flat scores (items,): compiled where a kernel knows the metrics, by torch elsewhere."""
    values = np.empty((dataset.num_queries, len(measures)))
    columns_of: dict[Conventions, list[int]] = {}
    for column, measure in enumerate(measures):
        if isinstance(measure, RewardExpression) and leaf_table(measure.leaves) is not None:
            columns_of.setdefault(measure.conventions, []).append(column)
        else:
            values[:, column] = values_by_torch(scores, dataset, measure)
    for columns in columns_of.values():
        expressions = [m for m in (measures[column] for column in columns) if isinstance(m, RewardExpression)]
        values[:, columns] = values_by_kernel(scores, dataset, expressions)
    return values


def values_by_kernel(
    scores: NDArray[np.floating], dataset: RankingDataset, expressions: Sequence[RewardExpression]
) -> NDArray[np.float64]:
    """Values (query, metric) of expressions of one convention whose metrics the kernel knows."""
    from rankpolicy.kernels.metrics.values import evaluate_queries, metric_terms

    conventions = expressions[0].conventions
    leaves = list(dict.fromkeys(leaf for expression in expressions for leaf in expression.leaves))
    table = leaf_table(leaves)
    assert table is not None
    if any(leaf.metric == "err" for leaf in leaves):
        check_label_scale(float(dataset.labels.max()), conventions)
    longest = int(dataset.sizes.max())
    terms = metric_terms(*table, np.ones(len(leaves)), conventions=conventions, num_positions=longest)
    leaf_values = evaluate_queries(scores.astype(np.float64, copy=False), dataset.labels, dataset.offsets, terms=terms)
    by_leaf = dict(zip(leaves, leaf_values.T, strict=True))
    return np.column_stack([expression.combine(by_leaf) for expression in expressions])


def values_by_torch(
    scores: NDArray[np.floating], dataset: RankingDataset, measure: Measure, *, cells_of_a_block: int = 1 << 21
) -> NDArray[np.float64]:
    """Values (query,) of any metric, in blocks of queries that bound the memory of padding."""
    queries_of_a_block = max(1, cells_of_a_block // int(dataset.sizes.max()))
    values = []
    for first in range(0, dataset.num_queries, queries_of_a_block):
        ends = dataset.offsets[first : first + queries_of_a_block + 1]
        items = slice(int(ends[0]), int(ends[-1]))
        padding = Padding.of_sizes(np.diff(ends))
        padded_scores = padding.pad(torch.from_numpy(scores[items].astype(np.float64)))
        padded_labels = padding.pad(torch.from_numpy(dataset.labels[items].astype(np.float64)))
        values.append(measure(rank_by_score(padded_scores, padding.mask), padded_labels, padding.mask).double().numpy())
    return np.concatenate(values)


def _measures(metrics: str | Sequence[object], conventions: Conventions) -> list[Measure]:
    if isinstance(metrics, str):
        return list(parse_metrics(metrics, conventions))
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


def _flat_scores(scores: Any, dataset: RankingDataset) -> NDArray[np.floating]:
    array = scores.detach().cpu().numpy() if isinstance(scores, torch.Tensor) else np.asarray(scores)
    if array.shape != (dataset.num_items,):
        raise RankPolicyError(
            f"scores must have one value per item of the dataset, shape ({dataset.num_items},); got {array.shape}. "
            "Give them in dataset order, or give a ranker with predict(dataset)."
        )
    if array.dtype.kind not in "fiub":
        raise RankPolicyError(f"scores must be numbers; got {array.dtype} values.")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    if np.isnan(array).any():
        missing = np.flatnonzero(np.isnan(array))
        query = dataset.query_ids[np.searchsorted(dataset.offsets, missing[0], side="right") - 1]
        raise RankPolicyError(
            f"scores must not be NaN; {len(missing)} of {len(array)} are, first at item {missing[0]} (query {query}). "
            "A ranker that gives NaN has diverged: lower its learning rate, or check its features."
        )
    return array
