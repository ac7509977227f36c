"""The off-policy estimators: each makes the terms of its estimate from a log and a policy to be evaluated.

A model of the reward of a list from a position on: a table of means, learned by cross-fitting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN
from rankpolicy.clicks.log.row_counts import weighted_counts
from rankpolicy.declarations.arguments import seeded
from rankpolicy.off_policy.intervals import SumOfRatios
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.off_policy.targets import PolicyTarget, Target, with_all_items
from rankpolicy.off_policy.weights import ImportanceWeights, list_weights, marginal_weights, prefix_weights
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]

PRIOR_ROUNDS = 5.0  # weight of the prior: means shrink to the mean of the item, and these to the mean of the position


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TailValues:
    """Q_p of the logged items, and its mean over the policy's choice at p given the items above; both (round, position)."""

    chosen: Floats
    expected: Floats


def given_tail_values(log: OffPolicyLog, target: PolicyTarget, table: Floats) -> TailValues:
    """Tail values from a given table Q (context, position, item), which must not be learned from the rewards of this log."""
    values = np.ascontiguousarray(table, np.float64)
    if values.ndim != 3 or values.shape[1] != log.num_positions or not np.isfinite(values).all():
        raise RankPolicyError(
            f"tail_values must be finite, (context, position, item) with {log.num_positions} positions; got {values.shape}."
        )
    if values.shape[0] != target.num_contexts or values.shape[2] != target.num_items:
        raise RankPolicyError(
            f"tail_values must have the {target.num_contexts} contexts and {target.num_items} items of the policy; "
            f"got {values.shape[0]} and {values.shape[2]}."
        )
    chosen, expected = np.zeros(log.items.shape), np.zeros(log.items.shape)
    for position in range(log.num_positions):
        chosen[:, position], expected[:, position] = _read(log, target, values[:, position], position)
    return TailValues(chosen=chosen, expected=expected)


def learned_tail_values(
    log: OffPolicyLog, target: PolicyTarget, position_weights: Floats, *, num_folds: int, random_state: int
) -> TailValues:
    """Tail values by the recursion of Kiyohara et al. (2022), from the last position up:

        Q_p(context, item) = mean of θ_p r_p + E[Q_{p+1}(context, next item)]

    over the rounds that showed the item at p, in all folds but the one it is used on. The table does not depend on the items above, which
    costs doubly robust estimates variance but adds no bias.
    """
    if not 2 <= num_folds <= len(log):
        raise RankPolicyError(f"num_folds must be from 2 to the number of rounds, {len(log)}; got {num_folds}.")
    folds = seeded(random_state).permutation(len(log)) % num_folds
    chosen, expected = np.zeros(log.items.shape), np.zeros(log.items.shape)
    for fold in range(num_folds):
        is_held_out = folds == fold
        later = np.zeros(len(log))
        for position in reversed(range(log.num_positions)):
            earned = position_weights[position] * log.rewards[:, position] + later
            table = _means(log, target, earned, position, ~is_held_out)
            of_shown, later = _read(log, target, table, position)
            chosen[is_held_out, position] = of_shown[is_held_out]
            expected[is_held_out, position] = later[is_held_out]
    return TailValues(chosen=chosen, expected=expected)


def _means(
    log: OffPolicyLog, target: PolicyTarget, earned: Floats, position: int, is_used: NDArray[np.bool_]
) -> Floats:
    """Mean reward (context, item) of the rounds used, shrunk to the mean of the item, which is shrunk to the mean of the position."""
    rows = np.flatnonzero(is_used & (log.items[:, position] != NOT_SHOWN))
    items, amounts, ones = log.items[rows, position], earned[rows], np.ones(len(rows))
    shape = target.num_contexts, target.num_items
    cells = log.contexts[rows] * target.num_items + items
    overall = amounts.mean() if len(rows) else 0.0
    of_item = _shrunk(
        weighted_counts(items, amounts, shape[1]), weighted_counts(items, ones, shape[1]), np.full(shape[1], overall)
    )
    sums = weighted_counts(cells, amounts, shape[0] * shape[1]).reshape(shape)
    counts = weighted_counts(cells, ones, shape[0] * shape[1]).reshape(shape)
    return _shrunk(sums, counts, of_item)


def _shrunk(sums: Floats, counts: Floats, prior: Floats) -> Floats:
    return (sums + PRIOR_ROUNDS * prior) / (counts + PRIOR_ROUNDS)


def _read(log: OffPolicyLog, target: PolicyTarget, table: Floats, position: int) -> tuple[Floats, Floats]:
    is_shown = log.items[:, position] != NOT_SHOWN
    chosen = np.where(is_shown, table[log.contexts, log.items[:, position]], 0.0)
    return chosen, np.where(is_shown, target.expected_next(log, np.ascontiguousarray(table), position=position), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OffPolicyQuery:
    """A log, the policy to be evaluated, and the options of ``estimate_policy_value``."""

    log: OffPolicyLog
    target: Target
    position_weights: Floats  # (position,)
    clip: float | None
    tail_values: ArrayLike | None
    num_folds: int
    random_state: int

    def gains(self) -> Floats:
        """θ_p r_p (round, position)."""
        return self.log.rewards if (self.position_weights == 1).all() else self.log.rewards * self.position_weights

    def tails(self) -> TailValues:
        """The values Q_p of the tails of lists, given or learned from the log."""
        target = with_all_items(self.target)
        if self.tail_values is not None:
            return given_tail_values(self.log, target, np.asarray(self.tail_values, np.float64))
        return learned_tail_values(
            self.log, target, self.position_weights, num_folds=self.num_folds, random_state=self.random_state
        )


class EstimatorTerms(NamedTuple):
    """The terms whose sum is the estimate, and the importance weights in them; None for an estimator without weights."""

    terms: SumOfRatios
    weights: ImportanceWeights | None


def ips(query: OffPolicyQuery) -> EstimatorTerms:
    """mean of w Σ_p θ_p r_p, w = π(list) / π₀(list). Unbiased for any users; its variance grows fastest with the length of lists."""
    weights = list_weights(query.log, query.target, query.clip)
    rewards = (query.log.rewards @ query.position_weights)[:, None]
    return EstimatorTerms(SumOfRatios(numerators=weights.values * rewards), weights)


def snips(query: OffPolicyQuery) -> EstimatorTerms:
    """ips / mean of w (Swaminathan & Joachims 2015): a little bias for less variance, and within the range of rewards."""
    terms, weights = ips(query)
    assert weights is not None
    return EstimatorTerms(SumOfRatios(numerators=terms.numerators, denominators=weights.values), weights)


def iips(query: OffPolicyQuery) -> EstimatorTerms:
    """Σ_p mean of w_p θ_p r_p, w_p = π(item at p) / π₀(item at p) (Li et al. 2018). Unbiased if users judge each position by itself."""
    weights = marginal_weights(query.log, query.target, query.clip)
    return EstimatorTerms(_weighted_rewards(query, weights), weights)


def sniips(query: OffPolicyQuery) -> EstimatorTerms:
    """iips with the mean of each position divided by the mean of its w_p."""
    weights = marginal_weights(query.log, query.target, query.clip)
    return EstimatorTerms(_normalised_rewards(query, weights), weights)


def rips(query: OffPolicyQuery) -> EstimatorTerms:
    """Σ_p mean of w_p θ_p r_p, w_p = π(first p items) / π₀(first p items) (McInerney et al. 2020). Unbiased if users read from the top."""
    weights = prefix_weights(query.log, query.target, query.clip)
    return EstimatorTerms(_weighted_rewards(query, weights), weights)


def snrips(query: OffPolicyQuery) -> EstimatorTerms:
    """rips with the mean of each position divided by the mean of its w_p, as its authors use it."""
    weights = prefix_weights(query.log, query.target, query.clip)
    return EstimatorTerms(_normalised_rewards(query, weights), weights)


def cascade_dr(query: OffPolicyQuery) -> EstimatorTerms:
    """mean of Σ_p w_p (θ_p r_p - Q_p(item at p)) + w_{p-1} E_π[Q_p | items above], w_p as in rips, w_0 = 1 (Kiyohara et al. 2022).

    Q_p is the reward of the list from position p on. Unbiased where rips is, however bad Q is; a better Q gives less variance.
    """
    weights = prefix_weights(query.log, query.target, query.clip)
    tails = query.tails()
    above = np.concatenate([np.ones((len(query.log), 1)), weights.values[:, :-1]], axis=1)
    residuals = query.gains() - tails.chosen
    values = np.einsum("rp,rp->r", weights.values, residuals) + np.einsum("rp,rp->r", above, tails.expected)
    return EstimatorTerms(SumOfRatios(numerators=values[:, None]), weights)


def direct(query: OffPolicyQuery) -> EstimatorTerms:
    """mean of E_π[Q_1 | context]. As good as Q is; the interval covers the spread over contexts, not the error of Q."""
    return EstimatorTerms(SumOfRatios(numerators=query.tails().expected[:, :1]), None)


def _weighted_rewards(query: OffPolicyQuery, weights: ImportanceWeights) -> SumOfRatios:
    return SumOfRatios(numerators=np.einsum("rp,rp->r", weights.values, query.gains())[:, None])


def _normalised_rewards(query: OffPolicyQuery, weights: ImportanceWeights) -> SumOfRatios:
    return SumOfRatios(numerators=weights.values * query.gains(), denominators=weights.values)
