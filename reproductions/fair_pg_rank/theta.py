"""All linear models of the synthetic data: what their weights θ = (θ1, θ2) are worth, and which of them a price on disparity chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.data import RankingDataset
from rankpolicy.fairness import position_bias
from rankpolicy.policies.plackett_luce import PlackettLuce
from rankpolicy.rankers import FairPGRank
from rankpolicy.types import Reward
from reproductions.fair_pg_rank.curves import Draw
from reproductions.fair_pg_rank.measures import Measured, measured
from reproductions.target import Row

Floats = NDArray[np.float64]


class LearnedModel(NamedTuple):
    """A linear model that FairPGRank learned, and what it is worth on its training data."""

    seed: int
    strength: float
    theta: tuple[float, float]
    utility: float
    disparity: float
    first_rank_entropy: float  # of the item at the first rank, mean over queries, in nats: how stochastic the policy is

    @property
    def share_of_x1(self) -> float:
        """abs(θ1) / (abs(θ1) + abs(θ2)): 0.5 on the line θ1 = θ2, 1 where x2 is ignored."""
        first, second = np.abs(self.theta)
        return float(first / (first + second))


def learned_models(
    draws: Sequence[Draw], strengths: Sequence[float], settings: dict[str, Any], reward: Reward
) -> list[LearnedModel]:
    """One model per seed and strength."""
    models = []
    for draw in draws:
        for strength in strengths:
            ranker = FairPGRank(strength=strength, reward=reward, random_state=draw.seed, **settings).fit(draw.train)
            x1, x2 = ranker.predict(np.eye(2)) - ranker.predict(np.zeros((2, 2)))
            padding = draw.train.padding().to("cpu")
            scores = padding.pad(torch.from_numpy(ranker.predict(draw.train))).masked_fill(~padding.mask, -torch.inf)
            chances = torch.distributions.Categorical(logits=scores)
            models.append(
                LearnedModel(
                    seed=draw.seed,
                    strength=strength,
                    theta=(float(x1), float(x2)),
                    utility=ranker.report_["utility"],
                    disparity=ranker.report_["disparity"],
                    first_rank_entropy=float(chances.entropy().mean()),
                )
            )
    return models


def rows_of_models(models: Sequence[LearnedModel]) -> list[Row]:
    """One row per strength: means over seeds."""
    rows = []
    for strength in dict.fromkeys(model.strength for model in models):
        same = [model for model in models if model.strength == strength]
        mean = {name: float(np.mean([getattr(model, name) for model in same])) for name in _COLUMNS}
        theta1, theta2 = np.mean([model.theta for model in same], axis=0).round(4).tolist()
        rows.append(
            {"panel": "θ on training data", "method": "FairPGRank, price", "set": f"λ = {strength:g}"}
            | {name: round(value, 6) for name, value in mean.items()}
            | {"theta1": theta1, "theta2": theta2}
        )
    return rows


_COLUMNS = ("utility", "disparity", "share_of_x1", "first_rank_entropy")


def value_of(theta: tuple[float, float], dataset: RankingDataset, reward: Reward) -> Measured:
    """What the policy of given weights is worth."""
    padding = dataset.padding().to("cpu")
    scores = padding.pad(torch.from_numpy(dataset.features_by_query.astype(np.float64) @ np.array(theta)))
    weights = position_bias(scores.shape[1], dtype=torch.float64)
    exposure = padding.unpad(PlackettLuce(scores, padding.mask).exposure(weights)).numpy()
    return measured(dataset.in_row_order(exposure), dataset, reward)


def contours(dataset: RankingDataset, models: Sequence[LearnedModel], reward: Reward, *, steps: int) -> Any:
    """A figure of NDCG and disparity over a square of θ, with the learned models of one seed as dots."""
    from rankpolicy.reports import figures

    side = np.linspace(-2, 10, steps)
    values = [[value_of((x, y), dataset, reward) for x in side] for y in side]
    with figures.style():
        figure = figures.new_figure(9.6, 4.4)
        for place, (name, title) in enumerate((("utility", "NDCG"), ("disparity", "group disparity")), 1):
            axes = figure.add_subplot(1, 2, place)
            heights = [[getattr(value, name) for value in line] for line in values]
            shades = axes.contourf(side, side, heights, levels=14, cmap="viridis", alpha=0.85)
            figure.colorbar(shades, ax=axes)
            axes.plot(side, side, color="white", linewidth=1, linestyle=":")
            inside = [model for model in models if max(model.theta) <= side[-1]]
            axes.plot(
                *zip(*(model.theta for model in inside), strict=True), "o", color="white", markeredgecolor="black"
            )
            for model in dict.fromkeys((inside[0], inside[-1])):  # the others lie close together
                axes.annotate(
                    f"λ = {model.strength:g}",
                    model.theta,
                    xytext=(6, 4),
                    textcoords="offset points",
                    fontsize=8,
                    color="white",
                )
            axes.set_title(f"{title} of θ, and models learned", fontsize=11)
            axes.set_xlabel("θ1")
            axes.set_ylabel("θ2")
        return figure
