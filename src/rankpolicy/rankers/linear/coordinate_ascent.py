"""Coordinate ascent: one weight of a linear ranker at a time, straight up the reward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.rankers.linear.reward_ascent import RewardAscent, RewardSurface, Weights
from rankpolicy.types import RankPolicyError


@final
@dataclass(kw_only=True, eq=False, repr=False)
class CoordinateAscent(RewardAscent):
    """Maximise mean reward - slack * ‖w - w_start‖ over weights w with Σ abs(w) = 1 (Metzler & Croft 2007); ``reward`` is any metric.

    A pass takes the features in random order and gives each weight the best of the values w, 0 and
    w ± step_base * size * (1 + step_scale + ... + step_scale^k), k < num_steps, with size = max(abs(w), 1 / features). Passes are the
    iterations; they end when one gains less than ``tolerance``. Each of ``restarts`` climbs in other orders, the first from equal weights,
    the others from random ones.
    """

    name: ClassVar[str] = "coordinate-ascent"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"scaling": "query_minmax"}, {"reward": "ndcg@10"})

    restarts: int = 5
    step_base: float = 0.05
    step_scale: float = 2.0
    num_steps: int = 12
    tolerance: float = 1e-3
    slack: float = 0.0
    max_passes: int = 25

    @property
    def _most_iterations(self) -> int:
        return self.restarts * self.max_passes

    def _climb(self, surface: RewardSurface) -> Iterator[tuple[Weights, float]]:
        self._check_settings()
        generator = np.random.default_rng(self.random_state)
        num_features = len(surface.columns)
        for restart in range(self.restarts):
            start = np.ones(num_features) if restart == 0 else generator.normal(size=num_features)
            start /= np.abs(start).sum()
            weights, objective = start, -np.inf
            for _ in range(self.max_passes):
                before = objective
                weights, objective = self._pass(surface, weights, start, generator.permutation(num_features))
                yield weights, objective + self.slack * float(np.linalg.norm(weights - start))
                if objective - before < self.tolerance:
                    break

    def _pass(
        self, surface: RewardSurface, weights: Weights, start: Weights, order: NDArray[np.int64]
    ) -> tuple[Weights, float]:
        """Weights after one line search along each feature, and what they reach."""
        scores = weights @ surface.columns
        for feature in order:
            steps = self._steps(weights[feature], len(weights))
            moved = np.tile(weights, (len(steps), 1))
            moved[:, feature] += steps
            sizes = np.abs(moved).sum(axis=1)
            # A step to 0 from the only weight there is leaves no direction.
            steps, moved, sizes = steps[sizes > 0], moved[sizes > 0], sizes[sizes > 0]
            moved /= sizes[:, None]
            values = surface.along(scores, surface.columns[feature], steps)
            values = values - self.slack * np.linalg.norm(moved - start, axis=1)
            # The least change among equals; means that differ by rounding only are equal.
            best = np.lexsort((np.abs(steps), -np.round(values, 12)))[0]
            objective = float(values[best])
            if steps[best] != 0:
                scores = (scores + steps[best] * surface.columns[feature]) / sizes[best]
                weights = moved[best]
        return weights, objective

    def _steps(self, weight: float, num_features: int) -> NDArray[np.float64]:
        """The changes of one weight to try (step,), rising."""
        growth = np.cumsum(self.step_scale ** np.arange(self.num_steps))
        upward = self.step_base * max(abs(weight), 1 / num_features) * growth
        return np.unique(np.concatenate([-upward, [0.0, -weight], upward]))

    def _check_settings(self) -> None:
        for name in ("restarts", "num_steps", "max_passes"):
            if getattr(self, name) < 1:
                raise RankPolicyError(f"{name} must be at least 1; got {getattr(self, name)}.")
        for name, least in (("tolerance", 0), ("slack", 0), ("step_scale", 1)):
            if getattr(self, name) < least:
                raise RankPolicyError(f"{name} must be {least} or more; got {getattr(self, name):g}.")
        if self.step_base <= 0:
            raise RankPolicyError(f"step_base must be above 0; got {self.step_base:g}.")
