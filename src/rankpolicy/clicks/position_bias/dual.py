"""Dual learning (Ai, Bi, Luo, Guo & Croft 2018): in turn, a ranker learns from clicks weighted by propensities, and propensities are
learned from clicks given the ranker.

With r the relevance of the items of a list and p the propensities of its positions, both up to a factor, the two losses are

    ranker:        - sum over clicks at k on item i of (p_1 / p_k) log(r_i / sum over the list of r)
    propensities:  - sum over clicks at k on item i of log(p_k r_i / sum over the list of p r)

Here the ranker is one number per (query, item) pair, so both are choice models, and one step of Hunter's (2004) algorithm lowers each
loss: the new value is the number of clicks that a pair (or rank) received over the number expected. Where clicks follow the
position-based model, the truth is a fixed point of both.

Ai et al. also weight the second loss, by r_first / r_i and without r in the logarithm. Their ranker is shared by all queries; one number
per pair is noisier, and since a click at k adds p_1 / p_k to it, r_i is largest where a low rank was clicked by chance. Dividing by it made
low ranks look less examined than they are (by 2 % at the tenth rank of benchmarks/position_bias.py with eta = 2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.row_counts import ratio, weighted_counts
from rankpolicy.clicks.position_bias.em import linked_pairs
from rankpolicy.clicks.position_bias.evidence import Evidence, PositionBiasMethod
from rankpolicy.clicks.position_bias.randomised import relative_to_first

MOST_ROUNDS, SMALL_CHANGE = 1000, 1e-8


def dual_learning(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Dual learning (Ai et al. 2018): a ranker and the propensities, each learned in turn given the other (resample, position)."""
    clicks = evidence.list_clicks(weights)
    curves = np.stack([_fixed_point(evidence.lists, of_lists, len(evidence.table)) for of_lists in clicks])
    return np.where(linked_pairs(evidence.pair_counts(weights)), relative_to_first(curves), np.nan)


DUAL_LEARNING = PositionBiasMethod(title="dual learning", estimate=dual_learning, needs_sessions=True)


def _fixed_point(lists: NDArray[np.int64], clicks: NDArray[np.float64], num_pairs: int) -> NDArray[np.float64]:
    """Propensities (position,) from distinct lists of pair codes (``num_pairs``: nothing shown) and their clicks, both (list, position)."""
    used = clicks.sum(1) > 0
    lists, clicks = lists[used], clicks[used]
    is_shown = lists < num_pairs
    relevance = np.append(np.ones(num_pairs), 0.0)
    propensities: NDArray[np.float64] = (clicks.sum(0) > 0).astype(np.float64)
    if propensities[0] == 0:
        return propensities  # weights are relative to the first rank: without clicks there, nothing can be learned
    for _ in range(MOST_ROUNDS):
        weighted = clicks * ratio(propensities[0] * np.ones_like(propensities), propensities)
        won = weighted_counts(lists, weighted, num_pairs + 1)
        per_list = ratio(weighted.sum(1), relevance[lists].sum(1))[:, None] * is_shown
        relevance = ratio(won, weighted_counts(lists, per_list, num_pairs + 1))
        of_list = relevance[lists]
        per_list = ratio(clicks.sum(1), of_list @ propensities)[:, None] * of_list
        previous, propensities = propensities, ratio(clicks.sum(0), per_list.sum(0))
        propensities = propensities / propensities.max()
        if abs(propensities - previous).max() < SMALL_CHANGE * propensities[propensities > 0].min():
            break
    return propensities
