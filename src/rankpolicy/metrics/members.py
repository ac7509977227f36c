"""All metrics, once: the parser, error texts, evaluation, kernels and contract tests read this table."""

from __future__ import annotations

from rankpolicy.declarations.members import Members
from rankpolicy.metrics.metric import Metric

METRICS: Members[Metric] = Members(
    "metric",
    {
        "ap": "rankpolicy.metrics.average_precision:AP",
        "avg_rank": "rankpolicy.metrics.average_rank:AVG_RANK",
        "dcg": "rankpolicy.metrics.discounted_cumulative_gain:DCG",
        "err": "rankpolicy.metrics.expected_reciprocal_rank:ERR",
        "ndcg": "rankpolicy.metrics.normalized_dcg:NDCG",
        "p": "rankpolicy.metrics.precision:P",
        "rbp": "rankpolicy.metrics.rank_biased_precision:RBP",
        "recall": "rankpolicy.metrics.recall_rate:RECALL",
        "rr": "rankpolicy.metrics.reciprocal_rank:RR",
        "success": "rankpolicy.metrics.success_rate:SUCCESS",
    },
)
