"""The synthetic data of Fair-PG-Rank: one feature is informative for the majority group only.

Ten job candidates of nearly the same relevance: the example with which fairness of exposure is motivated.
"""

from __future__ import annotations

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds, seeded
from rankpolicy.types import RankPolicyError

HIGHEST, HIGHEST_LABEL = 3.0, 5.0


@checked_kinds
def make_fair_synthetic(
    num_queries: int = 100,
    num_items: int = 10,
    *,
    minority_share: float = 0.2,
    random_state: int | None = 0,
) -> RankingDataset:
    """Items with features x1, x2 ~ U(0, 3) and label clip(x1 + x2, 0, 5); x2 is then 0 for the minority (Singh & Joachims 2019, 4.2).

    Labels are real numbers. Group 1 is the minority, group 0 the majority.

    Parameters
    ----------
    num_queries
        Number of queries.
    num_items
        Number of items of each query.
    minority_share
        Probability that an item belongs to the minority.
    random_state
        Seed; use different ones for training and test data.

    >>> data = make_fair_synthetic(2, 4)
    >>> for group, features, label in zip(data.groups, data.features, data.labels):
    ...     print(group, *features.round(2), label.round(2))
    0 1.91 0.81 2.72
    ...
    1 1.63 0.0 4.44
    ...
    """
    if num_queries < 1 or num_items < 1:
        raise RankPolicyError(f"num_queries and num_items must be 1 or more; got {num_queries} and {num_items}.")
    if not 0 <= minority_share <= 1:
        raise RankPolicyError(f"minority_share must be between 0 and 1; got {minority_share}.")
    generator = seeded(random_state)
    total = num_queries * num_items
    features = generator.uniform(0, HIGHEST, size=(total, 2)).astype(np.float32)
    groups = (generator.random(total) < minority_share).astype(np.int64)
    labels = np.clip(features.sum(1), 0, HIGHEST_LABEL)
    features[groups == 1, 1] = 0
    return RankingDataset(
        features_by_query=features,
        labels_by_query=labels,
        query_offsets=np.arange(num_queries + 1) * num_items,
        query_ids=np.arange(num_queries).astype(str),
        source_rows_by_query=np.arange(total),
        groups_by_query=groups,
        feature_names=("x1", "x2"),
    )


RELEVANCE = {"male": 0.89, "female": 0.88}
CANDIDATES_PER_GROUP = 5


def make_job_candidates() -> RankingDataset:
    """One query of ten candidates, five men of relevance 0.89 and five women of relevance 0.88 (Singh & Joachims 2019, section 2).

    Relevance is the probability of an interview; it is the label and the only feature. Ranked by it, women have the ranks 6 to 10: a
    hundredth less relevance, and with position bias 1 / log2(1 + rank) a mean exposure of 0.32 against 0.59.

    >>> data = make_job_candidates()
    >>> data.labels[[0, 9]].tolist(), data.groups[[0, 9]].tolist()
    ([0.89, 0.88], ['male', 'female'])
    """
    relevance = np.repeat(list(RELEVANCE.values()), CANDIDATES_PER_GROUP)
    return RankingDataset(
        features_by_query=relevance[:, None].astype(np.float32),
        labels_by_query=relevance,
        query_offsets=np.array([0, len(relevance)]),
        query_ids=np.array(["job"]),
        source_rows_by_query=np.arange(len(relevance)),
        groups_by_query=np.repeat(list(RELEVANCE), CANDIDATES_PER_GROUP),
        feature_names=("relevance",),
    )
