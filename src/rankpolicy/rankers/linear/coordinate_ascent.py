"""Coordinate ascent: maximise the reward of a linear ranker over one weight at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.declarations.settings import ReadWhen, setting, settings_class
from rankpolicy.rankers.linear.reward_ascent import RewardAscent, RewardSurface, Weights


@final
@settings_class
class CoordinateAscent(RewardAscent):
    """Maximise mean reward - slack * ‖w - w_start‖ over weights w with Σ abs(w) = 1 (Metzler & Croft 2007); any metric can be the reward.

    One pass goes through the features in random order and sets each weight w to the best of the values w, 0 and
    w ± step_base * size * (1 + step_scale + ... + step_scale^k), k < num_steps, with size = max(abs(w), 1 / features). One pass is one
    iteration; a climb ends when a pass gains less than ``tolerance``. The first climb starts from equal weights, the others from random
    ones.
    """

    name: ClassVar[str] = "coordinate-ascent"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"scaling": "query_minmax"}, {"reward": "ndcg@10"})

    restarts: int = setting(5, "Climbs from different starts; the best weights of all are kept.", at_least=1)
    step_base: float = setting(0.05, "Size of the first step of a line search, relative to the weight.", above=0)
    step_scale: float = setting(
        2.0,
        "Factor by which each further step grows.",
        at_least=1,
        read_when=ReadWhen(condition="num_steps is above 1", holds=lambda ranker: ranker.num_steps > 1),
    )
    num_steps: int = setting(12, "Steps tried in each direction of a line search.", at_least=1)
    tolerance: float = setting(1e-3, "Gain of a pass below which a climb ends.", at_least=0)
    slack: float = setting(0.0, "Penalty on the distance of the weights from their start.", at_least=0)
    max_passes: int = setting(25, "Passes over all features per climb at most.", at_least=1)

    @property
    def _most_iterations(self) -> int:
        return self.restarts * self.max_passes

    def _climb(self, surface: RewardSurface) -> Iterator[tuple[Weights, float]]:
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
        """Weights after one line search along each feature, and the objective there."""
        scores = weights @ surface.columns
        for feature in order:
            steps = self._steps(weights[feature], len(weights))
            moved = np.tile(weights, (len(steps), 1))
            moved[:, feature] += steps
            sizes = np.abs(moved).sum(axis=1)
            # A step to 0 of the only nonzero weight would leave no direction.
            steps, moved, sizes = steps[sizes > 0], moved[sizes > 0], sizes[sizes > 0]
            moved /= sizes[:, None]
            values = surface.along(scores, surface.columns[feature], steps)
            values = values - self.slack * np.linalg.norm(moved - start, axis=1)
            # Among equal values the smallest change; means that differ by rounding only count as equal.
            best = np.lexsort((np.abs(steps), -np.round(values, 12)))[0]
            objective = float(values[best])
            if steps[best] != 0:
                scores = (scores + steps[best] * surface.columns[feature]) / sizes[best]
                weights = moved[best]
        return weights, objective

    def _steps(self, weight: float, num_features: int) -> NDArray[np.float64]:
        """The changes of one weight to try (step,), in ascending order."""
        growth = np.cumsum(self.step_scale ** np.arange(self.num_steps))
        upward = self.step_base * max(abs(weight), 1 / num_features) * growth
        return np.unique(np.concatenate([-upward, [0.0, -weight], upward]))
