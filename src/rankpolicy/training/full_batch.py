"""Deterministic training of linear models on all queries at once, for objectives whose gradient is exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.batches import Batch
from rankpolicy.display import frozen_value
from rankpolicy.models.linear_networks import LinearNetworks
from rankpolicy.objectives.fair_policy_gradient import FairPolicyGradient
from rankpolicy.objectives.value import can_merge, merged
from rankpolicy.training.lbfgs import Search, Vector, lbfgs
from rankpolicy.types import RankPolicyError

_MOST_CELLS = 1 << 20  # of the queries of all policies that are evaluated at once


@frozen_value()
class FullBatchFit:
    """A linear model to train, and all that it needs: it maximises the report minus weight_decay / 2 times the sum of squared weights.

    No step is random, so that a curve over many strengths is smooth.
    """

    network: LinearNetworks  # in float64
    batch: Batch
    objective: FairPolicyGradient
    max_iterations: int = 200
    weight_decay: float = 0.0


def fit_full_batches(fits: Sequence[FullBatchFit]) -> list[list[float]]:
    """Train the models in place and return, for each, the report after each evaluation. Models of the same data are evaluated together."""
    searches = [_OneSearch(fit) for fit in fits]
    waiting = [search for search in searches if search.point is not None]
    while waiting:
        for together in _parts(waiting):
            _evaluate(together)
        waiting = [search for search in waiting if search.point is not None]
    return [search.finished() for search in searches]


class _OneSearch:
    """The search of one fit: where it wants to know the objective next, and what it has been told."""

    def __init__(self, fit: FullBatchFit) -> None:
        self.fit = fit
        start = fit.network.flat.copy()
        self.search: Search = lbfgs(start, max_iterations=fit.max_iterations)
        self.point: Vector | None = next(self.search)
        self.found = start
        self.reports: list[float] = []
        self.coefficients: NDArray[np.float64] | None = (
            None  # of exposure, at the last point; most of them do not change from point to point
        )

    def told(self, value: float, gradient: Vector, report: float) -> None:
        """Take the value of the minimised function, its gradient and the report at ``point``."""
        self.reports.append(report)
        if not np.isfinite(value + gradient.sum()):
            raise RankPolicyError(
                "training stopped: the objective is not finite.",
                python="Scale the features (scaling='standardize').",
                command_line="Scale the features (--set scaling=standardize).",
            )
        try:
            self.point = self.search.send((value, gradient))
        except StopIteration as end:
            self.point, self.found = None, end.value

    def finished(self) -> list[float]:
        """Write the weights that were found into the network, and give the reports."""
        self.fit.network.flat[:] = self.found
        return self.reports


def _parts(waiting: Sequence[_OneSearch]) -> list[list[_OneSearch]]:
    """The searches whose next points are evaluated together: on the same queries, with objectives that differ in numbers only."""
    groups: list[list[_OneSearch]] = []
    for search in waiting:
        fit = search.fit
        most = max(1, _MOST_CELLS // max(1, fit.batch.mask.size))
        for group in groups:
            first = group[0].fit
            if len(group) < most and first.batch is fit.batch and can_merge(first.objective, fit.objective):
                group.append(search)
                break
        else:
            groups.append([search])
    return groups


def _evaluate(searches: Sequence[_OneSearch]) -> None:
    """Tell each search the value and the gradient at its point."""
    batch, objective = searches[0].fit.batch, merged([search.fit.objective for search in searches], _LIKE)
    points = np.stack([search.point for search in searches if search.point is not None])
    num_policies, num_features = len(points), batch.features.shape[1]
    # The weights of one network after those of another, the bias last.
    networks = points.reshape(num_policies, -1, num_features + 1)
    policies = LinearNetworks(networks.mean(1))
    padded = batch.padding.pad(policies.member_scores(batch.features))
    repeated = replace(batch.repeated(num_policies), num_policies=num_policies)
    coefficients_before = [search.coefficients for search in searches if search.coefficients is not None]
    guess = np.concatenate(coefficients_before) if len(coefficients_before) == len(searches) else None
    assert isinstance(objective, FairPolicyGradient)
    value, slope = objective.with_slope(padded, repeated, guess=guess)
    slopes = slope.reshape(num_policies, -1)[:, batch.padding.cells]
    gradient = policies.gradient(slopes, batch.features) / networks.shape[1]
    decays = np.array([search.fit.weight_decay for search in searches])
    gradients = np.tile(gradient, networks.shape[1]) + decays[:, None] * points
    reports = value.report.reshape(-1)
    values = decays / 2 * np.square(points).sum(1) - reports
    assert value.coefficients is not None
    coefficients = np.split(value.coefficients, num_policies)
    for index, search in enumerate(searches):
        search.coefficients = coefficients[index]
        search.told(float(values[index]), gradients[index], float(reports[index]))


_LIKE = np.zeros(())
