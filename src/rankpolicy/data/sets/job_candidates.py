"""Ten job candidates of nearly the same relevance: the example with which fairness of exposure is motivated."""

from __future__ import annotations

import numpy as np

from rankpolicy.data.dataset import RankingDataset

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
