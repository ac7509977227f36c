"""All metrics, once: the parser, error texts, evaluation, kernels and contract tests read this table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.metrics.metric import Metric

METRICS: Members[Metric] = Members(
    "metric",
    {
        "ap": "rankpolicy.metrics.precision_recall:AP",
        "avg_rank": "rankpolicy.metrics.relevant_ranks:AVG_RANK",
        "dcg": "rankpolicy.metrics.discounted_gain:DCG",
        "err": "rankpolicy.metrics.stopping_users:ERR",
        "ndcg": "rankpolicy.metrics.discounted_gain:NDCG",
        "p": "rankpolicy.metrics.precision_recall:P",
        "rbp": "rankpolicy.metrics.stopping_users:RBP",
        "recall": "rankpolicy.metrics.precision_recall:RECALL",
        "rr": "rankpolicy.metrics.relevant_ranks:RR",
        "success": "rankpolicy.metrics.relevant_ranks:SUCCESS",
    },
)
