"""Importance weights of logged lists: the probability under the policy to be evaluated over that under the logging policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import NOT_SHOWN
from rankpolicy.off_policy.log import OffPolicyLog
from rankpolicy.off_policy.targets import Target
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImportanceWeights:
    """Weights, and how many of them were lowered to ``clip``."""

    values: Floats  # (round, position), or (round, 1) for whole lists
    num_clipped: int = 0


class WeightSums:
    """What is reported about importance weights that come in blocks: mean, effective sample size, and how many were clipped.

    >>> sums = WeightSums()
    >>> sums.add(ImportanceWeights(values=np.array([[2.0], [1.0], [1.0]])))
    >>> sums.means_and_effective_sample_sizes()  # 4 / 3, 16 / 6
    (array([1.33333333]), array([2.66666667]))
    """

    def __init__(self) -> None:
        self.num_rounds = self.num_clipped = 0
        self._totals: Floats = np.zeros(1)  # each is added to the sums of all columns
        self._squares: Floats = np.zeros(1)

    def add(self, weights: ImportanceWeights | None) -> None:
        """Take the weights of some more rounds; None for an estimator without weights."""
        if weights is None:
            return
        totals = np.ones(len(weights.values)) @ weights.values
        squares = np.einsum("rp,rp->p", weights.values, weights.values)
        self._totals, self._squares = self._totals + totals, self._squares + squares
        self.num_rounds += len(weights.values)
        self.num_clipped += weights.num_clipped

    def means_and_effective_sample_sizes(self) -> tuple[Floats, Floats]:
        """For each column the mean of w, which is 1 in expectation, and the effective sample size (sum of w)² / sum of w² (Kong 1992)."""
        sizes = np.divide(self._totals**2, self._squares, out=np.zeros_like(self._squares), where=self._squares > 0)
        return self._totals / self.num_rounds, sizes


def list_weights(log: OffPolicyLog, target: Target, clip: float | None) -> ImportanceWeights:
    """w = P_target(list) / P_log(list) (round, 1)."""
    if log.propensities is not None:
        return _clipped(target.prefix_products(log, log.propensities)[:, -1:], clip)
    if log.list_propensities is None:
        raise RankPolicyError(
            "importance weights of whole lists need the log's propensities (of each item given the items above it) or "
            "list_propensities; it has neither. With marginal_propensities alone, estimate with 'iips' or 'sniips'."
        )
    of_lists = target.prefix_products(log, np.ones(log.items.shape))[:, -1:]
    return _clipped(of_lists / log.list_propensities[:, None], clip)


def prefix_weights(log: OffPolicyLog, target: Target, clip: float | None) -> ImportanceWeights:
    """w_p = P_target(first p items) / P_log(first p items) (round, position)."""
    if log.propensities is None:
        raise RankPolicyError(
            "importance weights of the tops of lists need the log's propensities: of each item given the items above it. "
            "With marginal_propensities alone, estimate with 'iips'; with list_propensities alone, with 'ips'."
        )
    return _clipped(target.prefix_products(log, log.propensities), clip)


def marginal_weights(log: OffPolicyLog, target: Target, clip: float | None) -> ImportanceWeights:
    """w_p = P_target(item at p) / P_log(item at p) (round, position); 1 where none was shown."""
    if log.marginal_propensities is None:
        raise RankPolicyError(
            "importance weights of single positions need the log's marginal_propensities: of each item at its position, "
            "whatever is above it. With propensities given the items above, estimate with 'rips' or 'ips'."
        )
    ones = np.ones(log.items.shape)
    is_shown = log.items != NOT_SHOWN
    return _clipped(
        np.divide(target.marginal_probabilities(log), log.marginal_propensities, out=ones, where=is_shown), clip
    )


def _clipped(weights: Floats, clip: float | None) -> ImportanceWeights:
    if clip is None:
        return ImportanceWeights(values=weights)
    if not clip > 0:
        raise RankPolicyError(f"clip must be above 0, the largest importance weight to allow; got {clip}.")
    is_large = weights > clip
    return ImportanceWeights(values=np.minimum(weights, clip), num_clipped=int(is_large.sum()))
