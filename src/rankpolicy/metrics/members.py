"""All metrics, once: the parser, error texts, evaluation, kernels and contract tests read this table."""

from __future__ import annotations

from functools import cache

from rankpolicy.members import Members
from rankpolicy.metrics.metric import Metric
from rankpolicy.types import RankPolicyError, unknown_name

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


@cache
def metric_aliases() -> dict[str, str]:
    """Other names of metrics, each with the name it stands for: ``{"map": "ap", ...}``."""
    return {alias: name for name, metric in METRICS.items() for alias in metric.aliases}


def metric_named(name: str) -> Metric:
    """The metric of a name or alias.

    Parameters
    ----------
    name
        A name such as ``"ndcg"``, or an alias such as ``"map"``.

    >>> metric_named("map").name
    'ap'
    >>> metric_named("ndgc")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown metric 'ndgc'. Did you mean 'ndcg'? Known: ...
    """
    known = name if name in METRICS else metric_aliases().get(name)
    if known is None:
        raise RankPolicyError(unknown_name("metric", name, METRICS, also=[*metric_aliases(), "mean"]))
    return METRICS[known]
