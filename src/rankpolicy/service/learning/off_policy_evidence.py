"""The off-policy value of a candidate on the log of a service."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import msgspec
import numpy as np

from rankpolicy.off_policy.estimates import PolicyEstimate, estimate_policy_value
from rankpolicy.off_policy.estimators import OffPolicyQuery
from rankpolicy.off_policy.intervals import SumOfRatios
from rankpolicy.off_policy.log import OffPolicyLog, check_position_weights
from rankpolicy.off_policy.members import OFF_POLICY_ESTIMATORS
from rankpolicy.off_policy.targets import TargetProbabilities
from rankpolicy.service.dashboard.click_rates import is_covered
from rankpolicy.service.domain.messages import REQUEST, RankRequest
from rankpolicy.service.domain.records import LoggedList
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.types import RankPolicyError

NO_PROPENSITIES = "without propensities"
NO_EXPLORATION = "shown without any randomness"
NEARBY = "that are small changes of one order"
OPEN_WINDOW = "whose window is open"
EMPTY = "without items"
NOT_ACTIVATED = "that were never activated"
_NO_REWARDS = (EMPTY, OPEN_WINDOW, NOT_ACTIVATED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """Lists that off-policy estimates may use, and how many they may not."""

    lists: Sequence[LoggedList]
    requests: Sequence[RankRequest]
    log: OffPolicyLog
    refused: Mapping[str, int]
    num_estimated: int

    @property
    def logged_value(self) -> float:
        """Mean number of events per list, as the lists were shown."""
        return float(self.log.rewards.sum(1).mean())


def evidence_of(lists: Iterable[LoggedList], *, now: int, event: str = "click") -> Evidence:
    """The lists that off-policy estimates may use.

    Refused are lists without propensities (Thompson sampling has none in closed form), lists of policies that always show the same or
    only swap two positions of it (they say nothing about other lists), and lists whose window is open (their clicks are not complete).
    """
    usable: list[LoggedList] = []
    refused: Counter[str] = Counter()
    for logged in lists:
        reason = refusal_of(logged, now=now, event=event)
        if reason is None:
            usable.append(logged)
        else:
            refused[reason] += 1
    requests = [REQUEST.decode(logged.request) for logged in usable]
    if not usable:
        reasons = ", ".join(f"{number} {reason}" for reason, number in refused.items()) or "there is none"
        raise RankPolicyError(
            f"no list of the log can be used: {reasons}. Serve a policy that draws lists (uniform, swaps, epsilon-greedy, a sampled "
            "ranker), or ask for propensity_draws."
        )
    return Evidence(
        lists=usable,
        requests=requests,
        log=_log_of(usable, requests, event),
        refused=dict(refused),
        num_estimated=sum(logged.shown.propensity_draws > 0 for logged in usable),
    )


def candidate_value(
    evidence: Evidence, candidate: ServedPolicy, *, estimator: str = "rips", level: float = 0.95
) -> PolicyEstimate:
    """The number of events per list that a candidate would have had, estimated from lists that other policies showed."""
    return estimate_policy_value(
        evidence.log, TargetProbabilities(steps=_steps(evidence, candidate)), estimator=estimator, level=level
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A candidate against another policy."""

    value: float
    difference: float
    interval: tuple[float, float]
    paired: bool
    num_lists: int


def compared(
    evidence: Evidence,
    candidate: ServedPolicy,
    other: ServedPolicy,
    *,
    own_rewards: Sequence[float] = (),
    estimator: str = "rips",
    level: float = 0.95,
) -> Comparison:
    """The value of a candidate minus that of another policy, with an interval.

    Where the other has no probabilities in closed form, it is judged by the lists that it showed itself.
    """
    ours = _terms(evidence, candidate, estimator)
    width = NormalDist().inv_cdf((1 + level) / 2)
    if other.step_probabilities([], []) is not None:
        theirs = _terms(evidence, other, estimator)
        influences = ours.influences() - theirs.influences()
        n = len(influences)
        error = math.sqrt(float(influences @ influences) / (n * (n - 1))) if n > 1 else math.inf
        value, num_lists = theirs.value, n
    else:
        rewards = np.asarray(own_rewards, np.float64)
        if len(rewards) < 2:
            raise RankPolicyError(
                "the policy to compare with has no propensities in closed form, and showed too few lists itself to be judged by them."
            )
        value, num_lists = float(rewards.mean()), len(rewards)
        error = math.sqrt(ours.standard_error() ** 2 + float(rewards.var(ddof=1)) / len(rewards))
    difference = ours.value - value
    return Comparison(
        value=value,
        difference=difference,
        interval=(difference - width * error, difference + width * error),
        paired=other.step_probabilities([], []) is not None,
        num_lists=num_lists,
    )


def own_rewards(lists: Iterable[LoggedList], *, now: int, event: str = "click") -> list[float]:
    """Number of events on each list whose window has ended."""
    return [
        sum(logged.values(event) or ())
        for logged in lists
        if refusal_of(logged, now=now, event=event) not in _NO_REWARDS
    ]


def document_of(evidence: Evidence, estimate: PolicyEstimate, comparison: Comparison | None) -> dict[str, Any]:
    """Everything as JSON has it, which is null where a number is not finite."""
    document = {
        "estimate": estimate,
        "logged_value": evidence.logged_value,
        "lists": len(evidence.lists),
        "refused": evidence.refused,
        "estimated_propensities": evidence.num_estimated,
        "is_covered": _is_covered(estimate),
        "against": comparison,
    }
    encoded = msgspec.json.encode(document, enc_hook=float)  # of numpy's numbers
    return dict(msgspec.json.decode(encoded))


def _is_covered(estimate: PolicyEstimate) -> bool:
    """Whether the log has the lists that the candidate would show: the mean weight is then 1, up to chance."""
    weight, size = estimate.mean_weight, estimate.effective_sample_size
    return weight is None or size is None or is_covered(weight, size, estimate.num_rounds)


def refusal_of(logged: LoggedList, *, now: int, event: str = "click") -> str | None:
    """Why off-policy estimates may not use a list; None where they may."""
    steps = logged.shown.propensities
    if not logged.shown.items:
        return EMPTY
    if logged.deadline >= now:
        return OPEN_WINDOW
    if logged.values(event) is None:
        return NOT_ACTIVATED
    if steps is None or min(steps) <= 0:
        return NO_PROPENSITIES
    if min(steps) == 1 and len(REQUEST.decode(logged.request).items) > 1:
        return NO_EXPLORATION
    if isinstance(logged.shown.memo, dict) and "swap" in logged.shown.memo:
        return NEARBY
    return None


def _log_of(lists: Sequence[LoggedList], requests: Sequence[RankRequest], event: str) -> OffPolicyLog:
    longest = max(len(logged.shown.items) for logged in lists)
    items = np.full((len(lists), longest), -1, np.int32)
    rewards = np.zeros((len(lists), longest))
    propensities = np.ones((len(lists), longest))
    for row, (logged, request) in enumerate(zip(lists, requests, strict=True)):
        place_of = {item.id: index for index, item in enumerate(request.items)}
        size = len(logged.shown.items)
        items[row, :size] = [place_of[name] for name in logged.shown.items]
        rewards[row, :size] = logged.values(event)
        propensities[row, :size] = logged.shown.propensities
    return OffPolicyLog(items=items, rewards=rewards, contexts=np.arange(len(lists)), propensities=propensities)


def _steps(evidence: Evidence, policy: ServedPolicy) -> np.ndarray[Any, np.dtype[np.float64]]:
    steps = policy.step_probabilities(evidence.requests, [logged.shown.items for logged in evidence.lists])
    if steps is None:
        raise RankPolicyError(
            f"a candidate of the kind {policy.kind} has no probabilities in closed form, so the log cannot say what it would have earned."
        )
    padded = np.zeros(evidence.log.items.shape)
    for row, list_steps in enumerate(steps):
        padded[row, : len(list_steps)] = list_steps
    return padded


def _terms(evidence: Evidence, policy: ServedPolicy, estimator: str) -> SumOfRatios:
    query = OffPolicyQuery(
        log=evidence.log,
        target=TargetProbabilities(steps=_steps(evidence, policy)),
        position_weights=check_position_weights(None, evidence.log.num_positions),
        clip=None,
        tail_values=None,
        num_folds=2,
        random_state=0,
    )
    return OFF_POLICY_ESTIMATORS.named(estimator)(query).terms
