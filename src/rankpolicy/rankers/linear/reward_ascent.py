"""The base of linear rankers that maximise the training reward itself, iteration by iteration."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.scaling import FeatureScaling, fit_scaling
from rankpolicy.declarations.settings import setting
from rankpolicy.evaluation.measure import evaluate_scores, mean_over_queries
from rankpolicy.metrics import CustomReward, reward_to_maximise, term_table
from rankpolicy.rankers.fits import DECISIVE, FitOptions
from rankpolicy.rankers.linear.base import LinearRanker
from rankpolicy.training import epoch_progress
from rankpolicy.types import RankPolicyError, Reward

Weights = NDArray[np.float64]  # (features,)


class RewardSurface(NamedTuple):
    """The mean reward of the training queries as a function of the scores of their items."""

    dataset: RankingDataset
    columns: NDArray[np.float64]  # (features, items) scaled features
    reward: Reward

    @classmethod
    def of(cls, train: RankingDataset, scaling: FeatureScaling, reward: Reward) -> RewardSurface:
        """The surface over the queries whose reward depends on the ranking."""
        informative = ~np.isnan(evaluate_scores(np.zeros(train.num_items), train, [reward])[:, 0])
        # A user's function may depend on the ranking even where all labels are equal.
        if not isinstance(reward, CustomReward):
            lowest, highest = (
                f.reduceat(train.labels_by_query, train.query_offsets[:-1]) for f in (np.minimum, np.maximum)
            )
            informative &= lowest < highest
        if not informative.any() and isinstance(reward, CustomReward):
            raise RankPolicyError(
                f"the reward {reward.name!r} must give finite numbers; it gave NaN for every query. Check the function."
            )
        if not informative.any():
            raise RankPolicyError(
                "no query has items of different labels, so all rankings have the same reward and there is nothing to learn. "
                + ("There is one sample only." if train.num_items == 1 else "Check labels and qid.")
            )
        informative_train = train if informative.all() else train[informative]
        scaled = scaling.apply(informative_train.features_by_query, informative_train.query_offsets)
        return cls(informative_train, np.ascontiguousarray(scaled.T, dtype=np.float64), reward)

    def rewards(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rewards (query,) of the rankings by flat scores (items,)."""
        return evaluate_scores(scores, self.dataset, [self.reward])[:, 0]

    def mean(self, values: NDArray[np.float64]) -> float:
        """The mean of values (query,), weighted by the query weights."""
        return mean_over_queries(values, self.dataset.query_weights)

    def along(
        self, scores: NDArray[np.float64], direction: NDArray[np.float64], steps: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Mean rewards (step,) of ``scores + step * direction``; ``steps`` must be ascending."""
        table = term_table(self.reward)
        if table is None:
            return np.array([self.mean(self.rewards(scores + step * direction)) for step in steps])
        from rankpolicy.kernels.metrics.line_search import rewards_along_line
        from rankpolicy.kernels.metrics.values import metric_terms

        dataset, longest = self.dataset, int(self.dataset.sizes.max())
        terms = metric_terms(*table, conventions=self.reward.conventions, num_positions=longest)
        values = rewards_along_line(
            scores, direction, steps, labels=dataset.labels_by_query, offsets=dataset.query_offsets, terms=terms
        )
        return np.asarray(np.average(values, axis=0, weights=dataset.query_weights))


@dataclass(kw_only=True, eq=False, repr=False)
class RewardAscent(LinearRanker):
    """Keeps the weights of the best iteration on validation data, or on the training data where there is none."""

    uses_query_weights: ClassVar[bool] = True

    reward: Any = setting("map", "What is maximised: a metric or a mix of metrics by name, or a function of rankings.")

    @abstractmethod
    def _climb(self, surface: RewardSurface) -> Iterator[tuple[Weights, float]]:
        """Yield the weights after each iteration and the training reward there."""

    @property
    @abstractmethod
    def _most_iterations(self) -> int:
        """The highest number of iterations ``_climb`` may take."""

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> None:
        options.refuse_checkpoint(f"{type(self).__name__} keeps no checkpoints: it trains in seconds.")
        reward, metric = reward_to_maximise(self.reward), reward_to_maximise(self.valid_metric)
        scaling = fit_scaling(self.scaling, train)
        surface = RewardSurface.of(train, scaling, reward)
        held_out = (
            None if valid is None else scaling.apply(valid.features_by_query, valid.query_offsets).astype(np.float64)
        )
        rewards: list[float] = []
        scores: list[float] = []
        best, best_iteration = np.zeros(0), 0
        with epoch_progress(type(self).__name__, self._most_iterations, options.report) as report_epoch:
            for weights, training_reward in self._climb(surface):
                rewards.append(training_reward)
                latest = {reward.name: training_reward}
                if valid is not None and held_out is not None:
                    scores.append(
                        mean_over_queries(
                            evaluate_scores(held_out @ weights, valid, [metric])[:, 0], valid.query_weights
                        )
                    )
                    latest[f"validation {metric.name}"] = scores[-1]
                curve = rewards if valid is None else scores
                if len(curve) == 1 or curve[-1] > curve[best_iteration - 1]:
                    best, best_iteration = weights.copy(), len(curve)
                if report_epoch(len(rewards), latest):
                    break
        self._weights, self._scaling = best, scaling
        self.best_iteration_ = best_iteration
        self.best_score_ = None if valid is None else scores[best_iteration - 1]
        self.evals_result_ = {"training": {reward.name: rewards}}
        if valid is not None:
            self.evals_result_[DECISIVE] = {metric.name: scores}
