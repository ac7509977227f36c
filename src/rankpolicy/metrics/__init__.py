"""Metrics of rankings: the reward in training and the measure in evaluation.

All metrics have one signature: ``metric(rankings, labels, mask, *, cutoff=None, conventions=Conventions())`` returns values (..., query).
Rankings may be prefixes; ideals and divisors take every item of the query into account. A query without relevant items (no label of at
least ``relevant_from`` for binary metrics, no positive label for dcg, ndcg and err) has the value of ``conventions.empty``; dcg and rbp are
0 there, or NaN with ``"skip"``.

METRICS holds one value per metric, which its file declares: function, direction, options, forms for gradients and kernel code. The function
of each is an attribute of this package: ``rp.metrics.ndcg``.
"""

from typing import TYPE_CHECKING, Any

from rankpolicy.metrics.members import METRICS
from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.metrics.custom_reward import CustomReward
    from rankpolicy.metrics.expression import Leaf, RewardExpression, Term, TermTable, additive_form, term_table
    from rankpolicy.metrics.metric import AdditiveForm, CascadeForm, Metric, metric_named
    from rankpolicy.metrics.parse import as_reward, parse_metric, parse_metrics, reward_to_maximise
    from rankpolicy.metrics.ranked import all_items, rank_by_score, ranks_of

_imported_when_used, _names = lazy_imports(__name__, __file__)


def __getattr__(name: str) -> Any:
    return METRICS[name].function if name in METRICS else _imported_when_used(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *METRICS})


__all__ = [
    "METRICS",
    "AdditiveForm",
    "CascadeForm",
    "CustomReward",
    "Leaf",
    "Metric",
    "RewardExpression",
    "Term",
    "TermTable",
    "additive_form",
    "all_items",
    "as_reward",
    "metric_named",
    "parse_metric",
    "parse_metrics",
    "rank_by_score",
    "ranks_of",
    "reward_to_maximise",
    "term_table",
    *METRICS,
]
