"""The policy to be evaluated as off-policy estimators see it: probabilities of the logged items, and of all items at their positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import to_numpy
from rankpolicy.clicks.log.click_log import NOT_SHOWN
from rankpolicy.kernels import HAS_NUMBA
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.policies import Mixture, PlackettLuce
from rankpolicy.policies.choices import log_remaining_weights, ranked_log_weights
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetProbabilities:
    """A policy to be evaluated of which only the probabilities of the logged items are known; give those that are known.

    Deterministic and uniform policies need no such arrays: use a ``Mixture`` of one ranking, or a ``PlackettLuce`` of equal scores.

    Parameters
    ----------
    steps
        Probability of each logged item given the items above it in the log (round, position).
    marginals
        Probability of each logged item at its position, whatever is above it (round, position).
    """

    steps: Floats | None = None
    marginals: Floats | None = None

    def prefix_products(self, log: OffPolicyLog, divisors: Floats) -> Floats:
        """Running products of P(item | context, items above it) / divisor, down the logged lists (round, position).

        Parameters
        ----------
        log
            The log.
        divisors
            One number per logged item (round, position), such as its propensity.
        """
        return running_products(self._known("steps", log), divisors, log)

    def marginal_probabilities(self, log: OffPolicyLog) -> Floats:
        """P(item at this position | context) of the logged items (round, position).

        Parameters
        ----------
        log
            The log.
        """
        return self._known("marginals", log)

    def _known(self, name: str, log: OffPolicyLog) -> Floats:
        values = getattr(self, name)
        if values is None:
            raise RankPolicyError(f"this estimator needs TargetProbabilities({name}=...), and they are not given.")
        array = np.asarray(values, np.float64)
        if array.shape != log.items.shape or not ((array >= 0) & (array <= 1)).all():
            raise RankPolicyError(
                f"{name} must be probabilities of the shape of the log's items, {log.items.shape}; got shape {array.shape}."
            )
        return array


@dataclass(frozen=True, slots=True, eq=False)
class PolicyTarget:
    """A policy of which the probability of every item is known, in float64."""

    policy: Any  # a PlackettLuce or Mixture

    def prefix_products(self, log: OffPolicyLog, divisors: Floats) -> Floats:
        """Running products of P(item | context, items above it) / divisor, down the logged lists; all (round, position)."""
        raise NotImplementedError

    def expected_next(self, log: OffPolicyLog, values: Floats, *, position: int) -> Floats:
        """E[values[context, item at ``position``] | context, items above it in the log] (round,); ``values`` (context, item)."""
        raise NotImplementedError

    def marginal_probabilities(self, log: OffPolicyLog) -> Floats:
        """Exact: the exposure of an item when only one position counts is its probability there."""
        contexts, placed = _shown(log, self.policy.mask)
        marginals = np.empty(log.items.shape)
        for position in range(log.num_positions):
            only_position = np.zeros(self.num_items)
            only_position[position] = 1.0
            marginals[:, position] = self.policy.exposure(only_position)[contexts, placed[:, position]]
        return marginals

    @property
    def num_items(self) -> int:
        return int(self.policy.mask.shape[1])

    @property
    def num_contexts(self) -> int:
        return int(self.policy.mask.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class _PlackettLuceTarget(PolicyTarget):
    policy: PlackettLuce

    def prefix_products(self, log: OffPolicyLog, divisors: Floats) -> Floats:
        if HAS_NUMBA:
            from rankpolicy.kernels.clicks.off_policy import plackett_luce_products

            return plackett_luce_products(self.policy.scores, self.policy.mask, log.contexts, log.items, divisors)
        return running_products(plackett_luce_steps(self.policy, log), divisors, log)

    def expected_next(self, log: OffPolicyLog, values: Floats, *, position: int) -> Floats:
        if HAS_NUMBA:
            from rankpolicy.kernels.clicks import off_policy as kernels

            return kernels.plackett_luce_expected_next(
                self.policy.scores, self.policy.mask, values, log.contexts, log.items, position
            )
        return plackett_luce_expected_next(self.policy, log, values, position=position)


@dataclass(frozen=True, slots=True, eq=False)
class _MixtureTarget(PolicyTarget):
    policy: Mixture

    def prefix_products(self, log: OffPolicyLog, divisors: Floats) -> Floats:
        steps = np.ones(log.items.shape)
        above = np.ones(len(log))
        for position, reaching in enumerate(self._reaching(log)):
            reached = reaching.sum(0)
            # After an item that the policy never places here the prefix has weight 0, and the steps below do not matter.
            steps[:, position] = np.where(above > 0, reached / above.clip(1e-300), 0.0)
            above = reached
        return running_products(steps.clip(max=1.0), divisors, log)

    def expected_next(self, log: OffPolicyLog, values: Floats, *, position: int) -> Floats:
        contexts, _ = _shown(log, self.policy.mask)
        weights = self.policy.weights[:, contexts] if position == 0 else self._reaching(log)[position - 1]
        of_ranking = values[contexts, self.policy.rankings[:, contexts, position]]
        total = weights.sum(0)
        return (weights * of_ranking).sum(0) / total.clip(1e-300)

    def _reaching(self, log: OffPolicyLog) -> list[Floats]:
        """For each position the weight (ranking, round) of the rankings that agree with the log down to it."""
        contexts, placed = _shown(log, self.policy.mask)
        weights = self.policy.weights[:, contexts]
        reaching = []
        for position in range(log.num_positions):
            weights = weights * (self.policy.rankings[:, contexts, position] == placed[:, position])
            reaching.append(weights)
        return reaching


Target = TargetProbabilities | PolicyTarget  # a policy as the estimators see it


def with_all_items(target: Target) -> PolicyTarget:
    """A policy of which more is known than the probabilities of the logged items."""
    if isinstance(target, TargetProbabilities):
        raise RankPolicyError(
            "the direct method and doubly robust estimates need the policy's probability of every item, not only of those shown; "
            "give a PlackettLuce or a Mixture."
        )
    return target


def target_of(policy: Any, log: OffPolicyLog) -> Target:
    """The policy as the estimators see it, checked against the log."""
    if isinstance(policy, TargetProbabilities):
        return policy
    if isinstance(policy, PlackettLuce | Mixture):
        mask = to_numpy(policy.mask)
        _check_fits(log, mask)
        if isinstance(policy, PlackettLuce):
            return _PlackettLuceTarget(PlackettLuce(to_numpy(policy.scores).astype(np.float64), mask))
        return _MixtureTarget(Mixture(to_numpy(policy.rankings), to_numpy(policy.weights).astype(np.float64), mask))
    raise RankPolicyError(
        f"the policy must be a PlackettLuce, a Mixture or TargetProbabilities; got {type(policy).__name__}."
    )


def running_products(steps: Floats, divisors: Floats, log: OffPolicyLog) -> Floats:
    """Products (round, position) of step / divisor from the top down to each position; 1 where nothing was shown."""
    ratios: Floats = np.where(log.items == NOT_SHOWN, 1.0, steps / divisors)
    return np.multiply.accumulate(ratios, axis=1)


def plackett_luce_steps(policy: PlackettLuce, log: OffPolicyLog) -> Floats:
    """exp(score) of each logged item over the sum for all items not placed above it (round, position); 1 where nothing was shown."""
    contexts, placed = _shown(log, policy.mask)
    scores, mask = policy.scores[contexts], policy.mask[contexts]
    chosen, is_item = ranked_log_weights(scores, mask, placed)
    return np.where(is_item, np.exp(chosen - log_remaining_weights(scores, mask, placed)), 1.0)


def plackett_luce_expected_next(policy: PlackettLuce, log: OffPolicyLog, values: Floats, *, position: int) -> Floats:
    """Mean of ``values`` over the items not placed above ``position``, weighted by exp(score) (round,); 0 where none is left."""
    contexts, placed = _shown(log, policy.mask)
    unplaced = np.where(policy.mask[contexts], policy.scores[contexts], -np.inf)
    np.put_along_axis(unplaced, placed[:, :position], -np.inf, -1)
    is_left = unplaced > -np.inf
    highest = np.where(is_left.any(-1), unplaced.max(-1), 0.0)
    weights = np.exp(unplaced - highest[:, None])
    return (weights * values[contexts]).sum(-1) / np.where(is_left.any(-1), weights.sum(-1), 1.0)


def _shown(log: OffPolicyLog, mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Contexts (round,) and items (round, position); a padded item of the context where nothing was shown."""
    padded_items = mask.argmin(-1)[log.contexts, None]
    return log.contexts, np.where(log.items == NOT_SHOWN, padded_items, log.items)


def _check_fits(log: OffPolicyLog, mask: NDArray[np.bool_]) -> None:
    if log.contexts.max() >= mask.shape[0] or max(log.items.max() + 1, log.num_positions) > mask.shape[1]:
        raise RankPolicyError(
            f"the policy must have one row per context and one column per item of the log, {log.contexts.max() + 1} and "
            f"{max(log.items.max() + 1, log.num_positions)} or more; it has {mask.shape[0]} and {mask.shape[1]}."
        )
    # Most masks and lists are full: nothing to check round by round.
    if mask.all() and log.items.min() != NOT_SHOWN:
        return
    is_shown = log.items != NOT_SHOWN
    contexts = np.broadcast_to(log.contexts[:, None], log.items.shape)
    if not mask[contexts[is_shown], log.items[is_shown]].all():
        raise RankPolicyError(
            "the policy's mask must hold every item that the log shows in its context; one is masked."
        )
    lengths, expected = is_shown.sum(1), np.minimum(mask.sum(1), log.num_positions)[log.contexts]
    if (lengths != expected).any():
        row = int(np.argmax(lengths != expected))
        raise RankPolicyError(
            f"a list may end only where its context has no more items; round {row} shows {lengths[row]} of {expected[row]}."
        )
