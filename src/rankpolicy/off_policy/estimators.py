"""The off-policy estimators: each makes the terms of its estimate from a log and a policy to be evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.off_policy.intervals import SumOfRatios
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.off_policy.tail_values import TailValues, given_tail_values, learned_tail_values
from rankpolicy.off_policy.targets import Target, with_all_items
from rankpolicy.off_policy.weights import ImportanceWeights, list_weights, marginal_weights, prefix_weights

Floats = NDArray[np.float64]


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
