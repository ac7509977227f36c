"""Regression-EM (Wang, Golbandi, Bendersky, Metzler & Najork 2018): propensities and relevance jointly, by maximum likelihood.

    P(click on pair i at rank k) = propensity_k x relevance_i,    relevance_i = sigmoid(w . features_i), or a parameter of each pair.

The E step counts how often an item was examined, given the clicks: always when clicked, else with probability
propensity (1 - relevance) / (1 - propensity relevance). The M step re-estimates both from these counts; with features it makes one Newton
step of the logistic regression. Steps are extrapolated (Varadhan & Roland 2008): plain EM needs thousands where clicks are rare. Without
features there are as many parameters as pairs, so each pair needs many impressions; uninformative pairs are left out. The click model pbm
keeps them: the two differ where such a pair is clicked more often than the bound relevance <= 1 allows at its rank.

Propensities by a click model: the probability that each rank is examined, averaged over the lists of the log.

Dual learning (Ai, Bi, Luo, Guo & Croft 2018): in turn, a ranker learns from clicks weighted by propensities, and propensities are
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

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.log_pairs import PairCounts
from rankpolicy.clicks.log.row_counts import ratio, weighted_counts
from rankpolicy.clicks.models.click_model import ClickModel
from rankpolicy.clicks.models.fit import fit_click_model
from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.clicks.position_bias.evidence import Evidence, PositionBiasMethod
from rankpolicy.clicks.position_bias.harvest import linked_to_first
from rankpolicy.clicks.position_bias.randomised import relative_to_first

Array = NDArray[np.float64]
State = tuple[
    Array, Array
]  # propensities (resample, position); relevance (resample, pair) or weights (resample, feature)
SMALLEST = 1e-12
MOST_ROUNDS, SMALL_CHANGE = 500, 1e-6
DUAL_ROUNDS, DUAL_CHANGE = 1000, 1e-8
ROUNDS_OF_START = 30
RIDGE = 1e-9


def regression_em(evidence: Evidence, weights: Array) -> Array:
    """Regression-EM (Wang et al. 2018): propensities and relevance jointly, by maximum likelihood (resample, position)."""
    counts = evidence.pair_counts(weights)
    if evidence.pair_features is None:
        counts = informative_pairs(counts)
        propensities, relevance = alternating_start(counts)
        (curves, _) = _extrapolated(lambda state: em_step(counts, state), (propensities, relevance), is_share=True)
        return np.where(linked_pairs(counts), relative_to_first(curves), np.nan)
    design = np.column_stack([np.ones(len(evidence.pair_features)), evidence.pair_features])
    start = alternating_start(counts)[0], np.zeros((len(weights), design.shape[1]))
    (curves, _) = _extrapolated(lambda state: regression_step(counts, design, state), start, is_share=False)
    return np.where(counts.clicks.sum(1) > 0, relative_to_first(curves), np.nan)


REGRESSION_EM = PositionBiasMethod(title="regression-EM", estimate=regression_em, takes="pair_features")


def informative_pairs(counts: PairCounts) -> PairCounts:
    """The pairs that carry information about propensities: clicked, and shown at two or more ranks. At one rank any relevance fits.

    >>> counts = PairCounts(shown=np.array([[[9.0, 9.0], [9.0, 9.0], [9.0, 0.0]]]), clicks=np.array([[[3.0, 2.0], [0.0, 0.0], [4.0, 0.0]]]))
    >>> informative_pairs(counts).clicks
    array([[[3., 2.]]])
    """
    is_informative = (((counts.shown > 0).sum(2) >= 2) & (counts.clicks.sum(2) > 0)).any(0)
    return PairCounts(shown=counts.shown[:, is_informative], clicks=counts.clicks[:, is_informative])


def em_step(counts: PairCounts, state: State) -> State:
    """Propensities (resample, position) and relevance (resample, pair) after one step."""
    propensities, relevance = state
    examined = _examined(counts, propensities, relevance)
    return (
        ratio(examined.sum(1), counts.shown.sum(1)),
        ratio(counts.clicks.sum(2), examined.sum(2)),
    )


def regression_step(counts: PairCounts, design: Array, state: State) -> State:
    """The same with relevance = sigmoid(design @ weights), weights (resample, feature)."""
    propensities, feature_weights = state
    relevance = 1.0 / (1.0 + np.exp(-np.clip(feature_weights @ design.T, -30.0, 30.0)))
    examined = _examined(counts, propensities, relevance)
    trials = examined.sum(2)
    gradient = (counts.clicks.sum(2) - trials * relevance) @ design
    information = np.einsum("ri,if,ig->rfg", trials * relevance * (1.0 - relevance), design, design)
    information += RIDGE * np.eye(design.shape[1])
    step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
    return ratio(examined.sum(1), counts.shown.sum(1)), feature_weights + np.clip(step, -1.0, 1.0)


def alternating_start(counts: PairCounts) -> State:
    """Propensities and relevances that match the clicks of every pair and every rank; a good start where clicks are rare.

    Scaled so that the largest propensity is 1, and relevance at most 0.99.
    """
    shown, clicks = counts.shown, counts.clicks
    propensities = np.ones((len(shown), shown.shape[2]))
    for _ in range(ROUNDS_OF_START):
        relevance = ratio(clicks.sum(2), np.einsum("rik,rk->ri", shown, propensities))
        propensities = ratio(clicks.sum(1), np.einsum("rik,ri->rk", shown, relevance))
        propensities = ratio(propensities, np.broadcast_to(propensities.max(1, keepdims=True), propensities.shape))
    return propensities, np.minimum(relevance, 0.99)


def linked_pairs(counts: PairCounts) -> NDArray[np.bool_]:
    """Which ranks are linked to the first by clicked pairs that were shown at several ranks (resample, position)."""
    is_clicked = ((counts.shown > 0) & (counts.clicks.sum(2, keepdims=True) > 0)).astype(np.float64)
    return linked_to_first(np.einsum("rij,rik->rjk", is_clicked, is_clicked) > 0)


def _examined(counts: PairCounts, propensities: Array, relevance: Array) -> Array:
    # Just below 1: a pair that was clicked at every impression would give 0 / 0.
    chance, attracted = propensities[:, None, :], np.minimum(relevance, 1.0 - SMALLEST)[:, :, None]
    share = chance * (1.0 - attracted)
    share /= 1.0 - chance * attracted
    return counts.clicks + (counts.shown - counts.clicks) * share


def _extrapolated(step: Callable[[State], State], state: State, *, is_share: bool) -> State:
    """Fixed point of EM: two steps, an extrapolation along them, one more step, until propensities change by less than SMALL_CHANGE."""
    for _ in range(MOST_ROUNDS):
        first = step(state)
        second = step(first)
        moves = [after_one - start for after_one, start in zip(first, state, strict=True)]
        bends = [after_two - after_one - move for after_two, after_one, move in zip(second, first, moves, strict=True)]
        length = np.sqrt(sum((move**2).sum(1) for move in moves))
        bend = np.sqrt(sum((move**2).sum(1) for move in bends))
        # Between 1 and 100 plain steps: the curvature does not support a longer extrapolation.
        leap = np.clip(ratio(length, bend), 1.0, 100.0)[:, None]
        leapt = [start + 2 * leap * m + leap**2 * b for start, m, b in zip(state, moves, bends, strict=True)]
        propensities = np.clip(leapt[0], second[0] / 2, 1.0)
        other = np.clip(leapt[1], second[1] / 2, 1.0) if is_share else leapt[1]
        previous, state = state[0], step((propensities, other))
        if (
            abs(relative_to_first(state[0] + SMALLEST) / relative_to_first(previous + SMALLEST) - 1).max()
            < SMALL_CHANGE
        ):
            break
    return state


ITERATIONS, TOLERANCE = 1000, 1e-9


def click_model_examination(evidence: Evidence, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Examination by a fitted model, or by the named model fitted by maximum likelihood to each resample (resample, position)."""
    log, model = evidence.log, evidence.click_model
    if isinstance(model, ClickModel):
        return relative_to_first(np.tile(model.examination(log), (len(weights), 1)))
    examination = np.empty((len(weights), evidence.num_positions))
    em: dict[str, Any] = {"iterations": ITERATIONS, "tolerance": TOLERANCE} if CLICK_MODELS.named(model).uses_em else {}
    for resample, of_sessions in enumerate(weights):
        rows = np.flatnonzero(of_sessions > 0)
        drawn = replace(log.of_sessions(rows), counts=of_sessions[rows].astype(np.int64))
        examination[resample] = fit_click_model(model, drawn, prior=None, **em).examination(drawn)
    counts = evidence.pair_counts(weights)
    # The propensity of a rank that shares no pair with others is not determined: EM leaves it where it started.
    return np.where(linked_pairs(counts) & (counts.clicks.sum(1) > 0), relative_to_first(examination), np.nan)


CLICK_MODEL_EXAMINATION = PositionBiasMethod(
    title="examination by a click model", estimate=click_model_examination, takes="click_model"
)


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
    for _ in range(DUAL_ROUNDS):
        weighted = clicks * ratio(propensities[0] * np.ones_like(propensities), propensities)
        won = weighted_counts(lists, weighted, num_pairs + 1)
        per_list = ratio(weighted.sum(1), relevance[lists].sum(1))[:, None] * is_shown
        relevance = ratio(won, weighted_counts(lists, per_list, num_pairs + 1))
        of_list = relevance[lists]
        per_list = ratio(clicks.sum(1), of_list @ propensities)[:, None] * of_list
        previous, propensities = propensities, ratio(clicks.sum(0), per_list.sum(0))
        propensities = propensities / propensities.max()
        if abs(propensities - previous).max() < DUAL_CHANGE * propensities[propensities > 0].min():
            break
    return propensities
