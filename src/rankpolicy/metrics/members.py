"""The metrics, listed once: parsing, error texts and contract tests read this dict."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from rankpolicy.metrics.average_precision import ap
from rankpolicy.metrics.average_rank import avg_rank
from rankpolicy.metrics.discounted_cumulative_gain import dcg
from rankpolicy.metrics.expected_reciprocal_rank import err
from rankpolicy.metrics.normalized_dcg import ndcg
from rankpolicy.metrics.precision import p
from rankpolicy.metrics.rank_biased_precision import rbp
from rankpolicy.metrics.recall import recall
from rankpolicy.metrics.reciprocal_rank import rr
from rankpolicy.metrics.success import success

# metric(rankings, labels, mask, *, cutoff=None, conventions=Conventions()) -> values (..., query)
MetricFunction = Callable[..., Tensor]

METRICS: dict[str, MetricFunction] = {
    "ap": ap,
    "avg_rank": avg_rank,
    "dcg": dcg,
    "err": err,
    "ndcg": ndcg,
    "p": p,
    "rbp": rbp,
    "recall": recall,
    "rr": rr,
    "success": success,
}

ALIASES = {"map": "ap", "mrr": "rr", "precision": "p", "r": "recall"}

# The best ranking has the lowest value; of all other metrics the highest.
LOWER_IS_BETTER = ("avg_rank",)

# Options that an expression may set, as in "rbp(persistence=0.5)".
OPTIONS: dict[str, tuple[str, ...]] = {"rbp": ("persistence",)}
