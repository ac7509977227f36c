"""What changes when a ranker learns from clicks: labels and weights of the data, and what a reward may read of them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from rankpolicy.clicks.learning.evidence import ClickEvidence, check_weighting, propensity_table
from rankpolicy.clicks.learning.from_log import dataset_from_clicks
from rankpolicy.clicks.learning.from_table import weighted_by_propensity
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.metrics import METRICS, RewardExpression
from rankpolicy.types import RankPolicyError, Reward

_LEAST_RELEVANCE = 1e-9


def training_data_from_clicks(
    train: RankingDataset, clicks: Any, propensities: Any, weighted: str | None
) -> tuple[RankingDataset, ClickEvidence | None]:
    """The training data with labels and weights from a log, or weights for a click table; as it is where no clicks are concerned."""
    if weighted is not None:
        check_weighting(weighted)
        if clicks is None and propensities is None:
            raise RankPolicyError(
                "weighted= says how clicks are weighted: give propensities= (and clicks=, a log) with it."
            )
    if propensities is not None and train.query_weights is not None:
        raise RankPolicyError(
            "the training data have query weights already: pass no propensities with them, or data without weights."
        )
    if clicks is not None:
        return dataset_from_clicks(train, clicks, propensities, by=weighted or "item")  # type: ignore[arg-type]
    if propensities is not None:
        return weighted_by_propensity(train, propensities, by=weighted or "query")  # type: ignore[arg-type]
    if train.shown is not None and train.shown.ranks is not None and train.query_weights is None:
        warnings.warn(
            "this learns from clicks as they are, position bias included. Pass propensities=, such as those of estimate_position_bias, or "
            "propensities of 1 if that is meant.",
            stacklevel=3,
        )
    return train, None


def validation_data_with_clicks(valid: RankingDataset, propensities: Any) -> RankingDataset:
    """A click table gets weights, unless it has some; labelled data stay as they are."""
    if propensities is None or valid.query_weights is not None or valid.shown is None or valid.shown.ranks is None:
        return valid
    if propensity_table(propensities).ndim == 2:
        raise RankPolicyError(
            "propensities of the training queries do not tell those of the validation queries: weight these yourself, "
            "valid=weighted_by_propensity(valid, ...)[0]."
        )
    return weighted_by_propensity(valid, propensities)[0]


def binary_metrics(reward: Reward) -> list[str]:
    """The metrics of a reward that do not read labels as gains: they ask which items are relevant."""
    return [str(leaf) for leaf in reward.leaves if METRICS[leaf.metric].reads != "gains"]


def reward_on_relevances(reward: Reward) -> Reward:
    """The reward with labels as gains: relevances estimated from clicks are no grades, and may be any number from 0."""
    if not isinstance(reward, RewardExpression):
        return reward
    binary = binary_metrics(reward)
    if binary:
        graded = " and ".join(name for name, metric in METRICS.items() if metric.reads == "gains")
        raise RankPolicyError(
            f"the reward {binary[0]} asks which items are relevant, which a relevance estimated by item does not tell. Learn from whole "
            f"sessions, fit(..., weighted='query'), or take a reward of {graded}."
        )
    return replace(reward, conventions=replace(reward.conventions, gain="linear", relevant_from=_LEAST_RELEVANCE))


def check_bounded(train: RankingDataset, *, what: str, instead: str) -> None:
    """Refuse the relevances of single clicks, all 1 or more, where what is learned from them has then no least value."""
    clicked = train.labels[train.labels > 0]
    if len(clicked) and clicked.min() >= 1 and clicked.max() > 1:
        raise RankPolicyError(
            f"{what} has no least value for labels above 1, and the inverse propensities of single clicks are all 1 or more: {instead}."
        )
