"""The value of a ranking policy from the log of another: what it would have earned had it shown the lists itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.off_policy.intervals import INTERVALS, Spread, SumOfRatios
from rankpolicy.off_policy.log import OffPolicyLog, check_position_weights
from rankpolicy.off_policy.model import TailValues, given_tail_values, learned_tail_values
from rankpolicy.off_policy.targets import Target, TargetProbabilities, target_of
from rankpolicy.off_policy.weights import ImportanceWeights, list_weights, marginal_weights, prefix_weights
from rankpolicy.policies import Mixture, PlackettLuce
from rankpolicy.types import RankPolicyError, unknown_name

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEstimate:
    """An estimated value with its standard error and interval, and how much to trust it.

    ``effective_sample_size`` is the smallest over positions; far below ``num_rounds``, or ``mean_weight`` far from 1, the log says little
    of this policy. ``num_clipped`` weights were cut down to ``clip``, which biases the value towards the log's.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    level: float
    estimator: str
    num_rounds: int
    effective_sample_size: float | None = None  # None for estimates without importance weights
    mean_weight: float | None = None  # of the position where it is farthest from 1
    clip: float | None = None
    num_clipped: int = 0

    def __str__(self) -> str:
        low, high = self.interval
        parts = [f"{self.estimator} {self.value:.6g}, {self.level:.0%} interval [{low:.6g}, {high:.6g}]"]
        parts.append(f"{self.num_rounds} rounds")
        if self.effective_sample_size is not None:
            parts.append(f"effective sample size {self.effective_sample_size:.0f}, mean weight {self.mean_weight:.3g}")
        if self.clip is not None:
            parts.append(f"{self.num_clipped} weights clipped to {self.clip:g}")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
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
        if self.tail_values is not None:
            return given_tail_values(self.log, self.target, np.asarray(self.tail_values, np.float64))
        return learned_tail_values(
            self.log, self.target, self.position_weights, num_folds=self.num_folds, random_state=self.random_state
        )


Answer = tuple[SumOfRatios, ImportanceWeights | None]


def ips(asked: Question) -> Answer:
    """mean of w Σ_p θ_p r_p, w = π(list) / π₀(list). Unbiased whatever users do; its variance grows fastest with the length of lists."""
    weights = list_weights(asked.log, asked.target, asked.clip)
    return SumOfRatios(numerators=weights.values * (asked.log.rewards @ asked.position_weights)[:, None]), weights


def snips(asked: Question) -> Answer:
    """ips / mean of w (Swaminathan & Joachims 2015): a little bias for less variance, and inside the range of rewards."""
    terms, weights = ips(asked)
    assert weights is not None
    return SumOfRatios(numerators=terms.numerators, denominators=weights.values), weights


def iips(asked: Question) -> Answer:
    """Σ_p mean of w_p θ_p r_p, w_p = π(item at p) / π₀(item at p) (Li et al. 2018). Unbiased if users judge each place by itself."""
    weights = marginal_weights(asked.log, asked.target, asked.clip)
    return _weighted_rewards(asked, weights), weights


def sniips(asked: Question) -> Answer:
    """iips with each position's mean divided by the mean of its w_p."""
    weights = marginal_weights(asked.log, asked.target, asked.clip)
    return _normalised_rewards(asked, weights), weights


def rips(asked: Question) -> Answer:
    """Σ_p mean of w_p θ_p r_p, w_p = π(first p items) / π₀(first p items) (McInerney et al. 2020). Unbiased if users read from the top."""
    weights = prefix_weights(asked.log, asked.target, asked.clip)
    return _weighted_rewards(asked, weights), weights


def snrips(asked: Question) -> Answer:
    """rips with each position's mean divided by the mean of its w_p, as its authors use it."""
    weights = prefix_weights(asked.log, asked.target, asked.clip)
    return _normalised_rewards(asked, weights), weights


def cascade_dr(asked: Question) -> Answer:
    """mean of Σ_p w_p (θ_p r_p - Q_p(item at p)) + w_{p-1} E_π[Q_p | items above], w_p as in rips, w_0 = 1 (Kiyohara et al. 2022).

    Q_p is what the list earns from p on (off_policy_model.py). Unbiased where rips is, however bad Q is; the better Q, the less variance.
    """
    weights = prefix_weights(asked.log, asked.target, asked.clip)
    tails = asked.tails()
    above = np.concatenate([np.ones((len(asked.log), 1)), weights.values[:, :-1]], axis=1)
    residuals = asked.gains() - tails.chosen
    values = np.einsum("rp,rp->r", weights.values, residuals) + np.einsum("rp,rp->r", above, tails.expected)
    return SumOfRatios(numerators=values[:, None]), weights


def direct(asked: Question) -> Answer:
    """mean of E_π[Q_1 | context]. As good as Q is; its interval knows the spread over contexts, not the error of Q."""
    return SumOfRatios(numerators=asked.tails().expected[:, :1]), None


OFF_POLICY_ESTIMATORS: dict[str, Callable[[Question], Answer]] = {
    "ips": ips,
    "snips": snips,
    "iips": iips,
    "sniips": sniips,
    "rips": rips,
    "snrips": snrips,
    "cascade-dr": cascade_dr,
    "direct": direct,
}


def estimate_policy_value(
    log: OffPolicyLog,
    policy: PlackettLuce | Mixture | TargetProbabilities,
    *,
    estimator: str = "rips",
    position_weights: ArrayLike | None = None,
    clip: float | None = None,
    interval: str = "normal",
    level: float = 0.95,
    num_resamples: int = 2000,
    tail_values: ArrayLike | None = None,
    num_folds: int = 2,
    random_state: int = 0,
) -> PolicyEstimate:
    """Estimate E[Σ_p θ_p r_p] under a ``PlackettLuce``, a ``Mixture`` or ``TargetProbabilities``, whose rows are the log's contexts.

    ``position_weights`` are θ, all 1 unless given: the expected number of clicks. Weights are clipped only when ``clip`` says so.
    ``interval`` is one of INTERVALS; ``num_resamples`` belongs to "bootstrap". "cascade-dr" and "direct" learn Q from ``num_folds`` parts
    of the log, or take ``tail_values`` (context, position, item).

    >>> log = OffPolicyLog(items=[[0, 1], [1, 0]], rewards=[[1, 0], [0, 1]], contexts=[0, 0], propensities=[[0.5, 1]] * 2)
    >>> policy = TargetProbabilities(steps=[[0.75, 1], [0.25, 1]])
    >>> estimate_policy_value(log, policy).value  # (0.75 / 0.5 * 1 + 0.25 / 0.5 * 1) / 2
    1.0
    """
    if estimator not in OFF_POLICY_ESTIMATORS:
        raise RankPolicyError(unknown_name("off-policy estimator", estimator, OFF_POLICY_ESTIMATORS))
    if interval not in INTERVALS:
        raise RankPolicyError(unknown_name("interval", interval, INTERVALS))
    if not 0 < level < 1:
        raise RankPolicyError(f"level must lie between 0 and 1, such as 0.95; got {level:g}.")
    if num_resamples < 1:
        raise RankPolicyError(f"num_resamples must be 1 or more; got {num_resamples}.")
    asked = Question(
        log=log,
        target=target_of(policy, log),
        position_weights=check_position_weights(position_weights, log.num_positions),
        clip=clip,
        tail_values=tail_values,
        num_folds=num_folds,
        random_state=random_state,
    )
    terms, weights = OFF_POLICY_ESTIMATORS[estimator](asked)
    value, standard_error = terms.value, terms.standard_error()
    spread = Spread(
        terms=terms,
        value=value,
        standard_error=standard_error,
        level=level,
        num_resamples=num_resamples,
        random_state=random_state,
    )
    result = PolicyEstimate(
        value=value,
        standard_error=standard_error,
        interval=INTERVALS[interval](spread),
        level=level,
        estimator=estimator,
        num_rounds=len(log),
    )
    if weights is None:
        return result
    means, sizes = weights.means_and_effective_sample_sizes()
    return replace(
        result,
        effective_sample_size=float(sizes.min()),
        mean_weight=float(max(means, key=lambda mean: abs(mean - 1))),
        clip=clip,
        num_clipped=weights.num_clipped,
    )


def _weighted_rewards(asked: Question, weights: ImportanceWeights) -> SumOfRatios:
    return SumOfRatios(numerators=np.einsum("rp,rp->r", weights.values, asked.gains())[:, None])


def _normalised_rewards(asked: Question, weights: ImportanceWeights) -> SumOfRatios:
    return SumOfRatios(numerators=weights.values * asked.gains(), denominators=weights.values)
