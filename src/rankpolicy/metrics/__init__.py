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
    from rankpolicy.metrics.custom_reward import CustomReward as CustomReward
    from rankpolicy.metrics.expression import (
        Leaf as Leaf,
        RewardExpression as RewardExpression,
        Term as Term,
        TermTable as TermTable,
        additive_form as additive_form,
        term_table as term_table,
    )
    from rankpolicy.metrics.metric import (
        AdditiveForm as AdditiveForm,
        CascadeForm as CascadeForm,
        Metric as Metric,
        metric_named as metric_named,
    )
    from rankpolicy.metrics.parse import (
        as_reward as as_reward,
        parse_metric as parse_metric,
        parse_metrics as parse_metrics,
        reward_to_maximise as reward_to_maximise,
    )
    from rankpolicy.metrics.ranked import all_items as all_items, rank_by_score as rank_by_score, ranks_of as ranks_of

_imported_when_used, _names, _exported = lazy_imports(__name__, __file__)


def __getattr__(name: str) -> Any:
    return METRICS[name].function if name in METRICS else _imported_when_used(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *METRICS})


__all__ = ["METRICS", *_exported, *METRICS]
