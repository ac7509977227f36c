"""A reward as the plain arrays that compiled kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.kernels import has_numba
from rankpolicy.metrics.expression import Leaf, RewardExpression
from rankpolicy.types import Reward


class TermTable(NamedTuple):
    """Kind, cutoff and weight of each metric of a weighted sum; no cutoff is a number past every list."""

    kinds: NDArray[np.int64]  # (term,) codes of kernels/metrics.py
    cutoffs: NDArray[np.int64]  # (term,)
    weights: NDArray[np.float64]  # (term,)


def term_table(reward: Reward) -> TermTable | None:
    """The table of a linear reward; None where no kernel serves it (products, constants, rbp, own functions, no numba).

    >>> from rankpolicy.metrics import parse_metric
    >>> term_table(parse_metric("0.7*ndcg@10 + 0.3*p@5")).cutoffs.tolist()
    [10, 5]
    >>> term_table(parse_metric("ndcg * ap")) is None
    True
    """
    if not isinstance(reward, RewardExpression) or not reward.is_linear:
        return None
    table = leaf_table([term.factors[0] for term in reward.terms])
    if table is None:
        return None
    return TermTable(*table, np.array([term.weight for term in reward.terms]))


def leaf_table(leaves: Sequence[Leaf]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Kinds and cutoffs of these metrics, or None when the kernel does not know one of them."""
    if not has_numba():
        return None
    from rankpolicy.kernels.metrics.values import KINDS, NO_CUTOFF

    if any(leaf.metric not in KINDS or leaf.options for leaf in leaves):
        return None
    kinds = np.array([KINDS[leaf.metric] for leaf in leaves], np.int64)
    return kinds, np.array([leaf.cutoff or NO_CUTOFF for leaf in leaves], np.int64)
