"""The value of a ranking policy estimated from the log of another: the reward it would have earned with its own lists."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from rankpolicy.declarations.arguments import checked_kinds, checked_level
from rankpolicy.off_policy.estimators import EstimatorTerms, OffPolicyQuery
from rankpolicy.off_policy.intervals import INTERVALS, RatioMoments, SumOfRatios, quantile_of
from rankpolicy.off_policy.log import OffPolicyLog, check_position_weights
from rankpolicy.off_policy.members import OFF_POLICY_ESTIMATORS
from rankpolicy.off_policy.scanned_log import ScannedOffPolicyLog
from rankpolicy.off_policy.targets import TargetProbabilities, target_of
from rankpolicy.off_policy.weights import WeightSums
from rankpolicy.policies import Mixture, PlackettLuce
from rankpolicy.types import RankPolicyError, unknown_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEstimate:
    """An estimated value with its standard error and interval, and how far to trust it.

    Parameters
    ----------
    value
        The estimated value of the policy.
    standard_error
        Its standard error; NaN for one round.
    interval
        Lower and upper bound.
    level
        Level of the interval.
    estimator
        Name of the estimator.
    num_rounds
        Rounds of the log.
    effective_sample_size
        The smallest over positions. Far below ``num_rounds``, the log says little about this policy. None without importance weights.
    mean_weight
        Mean importance weight of the position where it is farthest from 1. Far from 1, the log says little about this policy. None without
        importance weights.
    clip
        The largest weight that was allowed; None: no clipping.
    num_clipped
        Weights that were lowered to ``clip``, which biases the value towards that of the log.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    level: float
    estimator: str
    num_rounds: int
    effective_sample_size: float | None = None
    mean_weight: float | None = None
    clip: float | None = None
    num_clipped: int = 0

    def __str__(self) -> str:
        low, high = self.interval
        facts = [f"{self.estimator} {self.value:.6g}, {self.level:.0%} interval [{low:.6g}, {high:.6g}]"]
        facts.append(f"{self.num_rounds} rounds")
        if self.effective_sample_size is not None:
            facts.append(f"effective sample size {self.effective_sample_size:.0f}, mean weight {self.mean_weight:.3g}")
        if self.clip is not None:
            facts.append(f"{self.num_clipped} weights clipped to {self.clip:g}")
        return "; ".join(facts)


@checked_kinds
def estimate_policy_value(
    log: OffPolicyLog | ScannedOffPolicyLog,
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
    """Estimate the value E[Σ_p θ_p r_p] of a policy from the log of another policy.

    Parameters
    ----------
    log
        Lists shown by a policy with known probabilities, and their rewards. A log of ``scan_off_policy_log`` is read block by block, for
        any policy but ``TargetProbabilities``, and without what needs all rounds at once: the bootstrap, and learning Q.
    policy
        The policy to evaluate; the rows of a ``PlackettLuce`` or ``Mixture`` are the contexts of the log.
    estimator
        A name of OFF_POLICY_ESTIMATORS. "rips" (the default) is unbiased if users read lists from the top, "ips" for any users but with
        more variance, "iips" if users judge each position by itself; "snips", "snrips" and "sniips" normalise the weights, for less
        variance and a little bias. "cascade-dr" and "direct" use a model Q of the rewards.
    position_weights
        θ, one number per position; 1 each by default, so that the value is the expected number of clicks.
    clip
        The largest importance weight. None (the default) clips nothing; clipping lowers variance and adds bias.
    interval
        "normal" (the default), "t" for few rounds, or "bootstrap" for skewed values.
    level
        Level of the interval, between 0 and 1.
    num_resamples
        Bootstrap resamples, for interval="bootstrap".
    tail_values
        For "cascade-dr" and "direct": a model Q (context, position, item) of the reward from a position on, not learned from this log. By
        default Q is learned by cross-fitting.
    num_folds
        Parts of the log for cross-fitting Q.
    random_state
        Seed of the bootstrap and of the folds.

    >>> log = OffPolicyLog(items=[[0, 1], [1, 0]], rewards=[[1, 0], [0, 1]], contexts=[0, 0], propensities=[[0.5, 1]] * 2)
    >>> policy = TargetProbabilities(steps=[[0.75, 1], [0.25, 1]])
    >>> estimate_policy_value(log, policy).value  # (0.75 / 0.5 * 1 + 0.25 / 0.5 * 1) / 2
    1.0
    """
    chosen = OFF_POLICY_ESTIMATORS.named(estimator)
    if interval not in INTERVALS:
        raise RankPolicyError(unknown_name("interval", interval, INTERVALS))
    checked_level(level)
    if num_resamples < 1:
        raise RankPolicyError(f"num_resamples must be 1 or more; got {num_resamples}.")
    position_weights = check_position_weights(position_weights, log.num_positions)

    def terms_of(rounds: OffPolicyLog) -> EstimatorTerms:
        return chosen(
            OffPolicyQuery(
                log=rounds,
                target=target_of(policy, rounds),
                position_weights=position_weights,
                clip=clip,
                tail_values=tail_values,
                num_folds=num_folds,
                random_state=random_state,
            )
        )

    weights = WeightSums()
    ratios: SumOfRatios | RatioMoments
    if isinstance(log, ScannedOffPolicyLog):
        _check_streamed(policy, estimator, tail_values, interval)
        ratios = RatioMoments()
        for block in log.blocks():
            terms, weights_of_block = terms_of(block)
            ratios.add(terms)
            weights.add(weights_of_block)
    else:
        ratios, all_weights = terms_of(log)
        weights.add(all_weights)
    value, standard_error = ratios.value, ratios.standard_error()
    if interval == "bootstrap":  # the middle of the values of resampled rounds (Efron & Tibshirani 1993, chapter 13)
        assert isinstance(ratios, SumOfRatios), "checked above"
        resampled = ratios.resampled(num_resamples, random_state)
        low, high = map(float, np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2]))
    else:
        half = quantile_of(interval, level, len(log)) * standard_error
        low, high = value - half, value + half
    result = PolicyEstimate(
        value=value,
        standard_error=standard_error,
        interval=(low, high),
        level=level,
        estimator=estimator,
        num_rounds=len(log),
    )
    if not weights.num_rounds:
        return result
    means, sizes = weights.means_and_effective_sample_sizes()
    return replace(
        result,
        effective_sample_size=float(sizes.min()),
        mean_weight=float(max(means, key=lambda mean: abs(mean - 1))),
        clip=clip,
        num_clipped=weights.num_clipped,
    )


def _check_streamed(policy: object, estimator: str, tail_values: ArrayLike | None, interval: str) -> None:
    """Refuse what needs all rounds of a log at once."""
    if isinstance(policy, TargetProbabilities):
        raise RankPolicyError(
            "TargetProbabilities are given round by round, and a scanned log is read block by block. Give a PlackettLuce or a Mixture."
        )
    if interval == "bootstrap":
        raise RankPolicyError(
            "interval='bootstrap' draws rounds again and needs them in memory; a scanned log is read block by block. Use 'normal' or 't'."
        )
    if estimator in ("cascade-dr", "direct") and tail_values is None:
        raise RankPolicyError(
            f"{estimator!r} learns Q from all rounds at once, and a scanned log is read block by block. Give tail_values, or use 'rips'."
        )
