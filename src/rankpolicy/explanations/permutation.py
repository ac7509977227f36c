"""Importance of features by permutation: how much worse a ranker is when a feature is shuffled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import check_has_labels
from rankpolicy.declarations.arguments import checked_level, seeded, whole_number
from rankpolicy.evaluation.bootstrap import bootstrap_interval
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.explanations.explained_items import dataset_to_explain, names_of
from rankpolicy.explanations.importance import FeatureImportance
from rankpolicy.metrics import reward_to_maximise
from rankpolicy.metrics.expression import reward_for_labels

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker


def permutation_importance(
    ranker: Ranker,
    data: Any,
    *,
    y: Any = None,
    qid: Any = None,
    group: Any = None,
    metric: Any = "ndcg@10",
    num_repeats: int = 5,
    level: float = 0.95,
    random_state: int | None = 0,
) -> FeatureImportance:
    """Drop of a metric when the values of one feature are exchanged between all items of the data, also across queries (Breiman 2001).

    Exchange across queries shows the importance of features that are the same for all items of a query, too. Of features that carry the
    same information, each may look unimportant while the other remains. The interval is the bootstrap over queries of the drop per query,
    averaged over repeats.

    Parameters
    ----------
    ranker
        A fitted ranker that reads features.
    data
        Data with labels, best that the ranker was not trained on.
    y, qid, group
        Labels and queries of a matrix or frame, as for ``fit``.
    metric
        The metric that drops, by name or as a metric.
    num_repeats
        How often each feature is shuffled.
    level
        Level of the intervals, between 0 and 1.
    random_state
        Seed of the shuffles; None draws new ones each time.
    """
    whole_number("num_repeats", num_repeats, at_least=1)
    checked_level(level)
    generator = seeded(random_state)
    dataset = dataset_to_explain(ranker, data, "data to measure on", y=y, qid=qid, group=group)
    check_has_labels(dataset, "data to measure on")
    measure = reward_for_labels(reward_to_maximise(metric), dataset.label_kind)
    before = evaluate_scores(ranker._scores(dataset), dataset, [measure])[:, 0]
    features = dataset.features_by_query.copy()
    shuffled = replace(dataset, features_by_query=features)
    drops_with_intervals = np.empty((3, dataset.num_features))
    for column in range(dataset.num_features):
        values, drops = dataset.features_by_query[:, column], np.zeros(dataset.num_queries)
        for _ in range(num_repeats if _varies(values) else 0):
            # The dataset holds a read-only view of this array.
            features[:, column] = values[generator.permutation(dataset.num_items)]
            drops += before - evaluate_scores(ranker._scores(shuffled), dataset, [measure])[:, 0]
        features[:, column] = values
        drops /= num_repeats
        interval = bootstrap_interval(drops, query_weights=dataset.query_weights, level=level)
        drops_with_intervals[:, column] = mean_over_queries(drops, dataset.query_weights), *interval
    return FeatureImportance(
        names=names_of(dataset),
        importances=drops_with_intervals[0],
        lower=drops_with_intervals[1],
        upper=drops_with_intervals[2],
        method="permutation",
        metric=measure.name,
        level=level,
        ranker=ranker.name,
    )


def _varies(values: NDArray[np.float32]) -> bool:
    """Whether there is anything to shuffle."""
    missing = np.isnan(values)
    return bool(missing.any() != missing.all() or (values[~missing] != values[~missing][:1]).any())
