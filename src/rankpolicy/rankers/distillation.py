"""One tree ensemble that scores as another ranker does, for programs that compute trees only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.rankers.base import Ranker
from rankpolicy.rankers.trees.boosted_regression import BoostedRegression
from rankpolicy.types import RankPolicyError, unknown_name

_STUDENTS = ("trees",)


@checked_kinds
def distil(
    ranker: Ranker,
    data: RankingDataset,
    *,
    into: str = "trees",
    num_trees: int = 300,
    num_leaves: int = 31,
    learning_rate: float = 0.1,
    random_state: int | None = 0,
) -> BoostedRegression:
    """Trees that reproduce the scores of a fitted ranker: of AutoRanker, of a network, or of a fair policy.

    They are grown on the scores that the ranker gives the items of ``data``, by squared error within queries: what they lack is a
    constant per query, which changes no ranking. Labels are not read, and the more items there are, the closer the trees come: give all
    data, labelled or not. Scores that depend on the other items of a query (query means, policies that are fair over a list) are followed
    as far as an item's own features determine them.

    Parameters
    ----------
    ranker
        A fitted ranker over features.
    data
        Items to learn the scores on, such as the training data; with groups where the ranker needs them.
    into
        What to make: "trees".
    num_trees
        How many trees to grow. More are closer and slower.
    num_leaves
        Leaves per tree.
    learning_rate
        Factor on the output of every tree.
    random_state
        Seed of the choice of bins.
    """
    if into not in _STUDENTS:
        raise RankPolicyError(unknown_name("kind of model to distil into", into, _STUDENTS))
    ranker._require_fitted()
    if ranker._reads_texts:
        raise RankPolicyError(f"distil needs a ranker over features; this {type(ranker).__name__} reads texts.")
    scores = data.in_query_order(ranker.predict(data))
    labels = (scores - scores.min()).astype(np.float32)
    student = BoostedRegression(
        loss="within-query",
        num_trees=num_trees,
        num_leaves=num_leaves,
        learning_rate=learning_rate,
        min_items_in_leaf=5,
        feature_fraction=1.0,
        bagging_fraction=1.0,
        patience=None,
        random_state=random_state,
    )
    return student.fit(replace(data, labels_by_query=labels, label_kind="grades", click_evidence=None), progress=False)
