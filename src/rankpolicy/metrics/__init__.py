"""Metrics of rankings: the reward in training and the measure in evaluation.

One signature for all: ``metric(rankings, labels, mask, *, cutoff=None, conventions=Conventions())`` gives values
(..., query). Rankings may be prefixes; ideals and divisors know every item of the query. A query without relevant items
(no label >= relevant_from for binary metrics, no positive label for dcg, ndcg and err) gets the value
``conventions.empty``; dcg and rbp are 0 there by nature and follow only ``"skip"``.
"""

from rankpolicy.metrics.additive import ADDITIVE, AdditiveForm, additive_form
from rankpolicy.metrics.average_precision import ap
from rankpolicy.metrics.average_rank import avg_rank
from rankpolicy.metrics.discounted_cumulative_gain import dcg
from rankpolicy.metrics.expected_reciprocal_rank import err
from rankpolicy.metrics.expression import CustomReward, Leaf, RewardExpression, Term
from rankpolicy.metrics.members import ALIASES, LOWER_IS_BETTER, METRICS, MetricFunction
from rankpolicy.metrics.normalized_dcg import ndcg
from rankpolicy.metrics.parse import as_reward, parse_metric, parse_metrics, reward_to_maximise
from rankpolicy.metrics.precision import p
from rankpolicy.metrics.rank_biased_precision import rbp
from rankpolicy.metrics.ranked import all_items, rank_by_score, ranks_of
from rankpolicy.metrics.recall import recall
from rankpolicy.metrics.reciprocal_rank import rr
from rankpolicy.metrics.success import success
from rankpolicy.metrics.term_table import TermTable, term_table

__all__ = [
    "ADDITIVE",
    "ALIASES",
    "LOWER_IS_BETTER",
    "METRICS",
    "AdditiveForm",
    "CustomReward",
    "Leaf",
    "MetricFunction",
    "RewardExpression",
    "Term",
    "TermTable",
    "additive_form",
    "all_items",
    "ap",
    "as_reward",
    "avg_rank",
    "dcg",
    "err",
    "ndcg",
    "p",
    "parse_metric",
    "parse_metrics",
    "rank_by_score",
    "ranks_of",
    "rbp",
    "recall",
    "reward_to_maximise",
    "rr",
    "success",
    "term_table",
]
