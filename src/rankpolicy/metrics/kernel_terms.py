"""A reward as the plain arrays that compiled kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.kernels import has_numba
from rankpolicy.kernels.metrics.codes import NO_CUTOFF
from rankpolicy.metrics.expression import Leaf, RewardExpression
from rankpolicy.metrics.members import METRICS
from rankpolicy.types import Reward


class TermTable(NamedTuple):
    """Code, cutoff and weight of each metric of a weighted sum.

    Parameters
    ----------
    kinds
        Codes of the metrics (term,), from ``kernels/metrics/codes.py``.
    cutoffs
        Cutoffs (term,); ``codes.NO_CUTOFF`` where every position counts.
    weights
        Weights (term,).
    """

    kinds: NDArray[np.int64]
    cutoffs: NDArray[np.int64]
    weights: NDArray[np.float64]


def term_table(reward: Reward) -> TermTable | None:
    """The table of a weighted sum of metrics that kernels know; None for other rewards, and where numba is not installed.

    Parameters
    ----------
    reward
        Any reward. Products of metrics, constants, metrics without a kernel and functions of the user's own give None.

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
    """Codes and cutoffs of these metrics; None when no kernel computes one of them."""
    if not has_numba():
        return None
    codes = [None if leaf.options else METRICS[leaf.metric].kernel_code for leaf in leaves]
    if any(code is None for code in codes):
        return None
    return np.array(codes, np.int64), np.array([leaf.cutoff or NO_CUTOFF for leaf in leaves], np.int64)
