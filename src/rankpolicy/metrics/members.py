"""All metrics, once: the parser, error texts, evaluation, kernels and contract tests read this table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.metrics.metric import Metric

METRICS: Members[Metric] = Members(
    "metric",
    {
        "ap": "rankpolicy.metrics.average_precision:AP",
        "avg_rank": "rankpolicy.metrics.average_rank:AVG_RANK",
        "dcg": "rankpolicy.metrics.discounted_gain:DCG",
        "err": "rankpolicy.metrics.expected_reciprocal_rank:ERR",
        "ndcg": "rankpolicy.metrics.discounted_gain:NDCG",
        "p": "rankpolicy.metrics.precision_recall:P",
        "rbp": "rankpolicy.metrics.rank_biased_precision:RBP",
        "recall": "rankpolicy.metrics.precision_recall:RECALL",
        "rr": "rankpolicy.metrics.first_relevant:RR",
        "success": "rankpolicy.metrics.first_relevant:SUCCESS",
    },
)
