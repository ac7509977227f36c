"""A model of the reward of a list from a position on: a table of means, learned by cross-fitting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN
from rankpolicy.clicks.log.row_counts import weighted_counts
from rankpolicy.declarations.arguments import seeded
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.off_policy.targets import PolicyTarget
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
