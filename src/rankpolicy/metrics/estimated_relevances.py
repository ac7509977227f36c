"""Which metrics can be computed from relevances that were estimated from clicks."""

from __future__ import annotations

from dataclasses import replace

from rankpolicy.data.click_evidence import LabelKind
from rankpolicy.metrics.expression import RewardExpression
from rankpolicy.metrics.members import METRICS
from rankpolicy.types import RankPolicyError, Reward

LEAST_RELEVANCE = 1e-9


def binary_metrics(reward: Reward) -> list[str]:
    """The metrics of a reward that ask which items are relevant, instead of reading labels as gains."""
    if not isinstance(reward, RewardExpression):
        return []
    return [str(leaf) for leaf in reward.leaves if METRICS[leaf.metric].reads != "gains"]


def reward_for_labels(reward: Reward, label_kind: LabelKind) -> Reward:
    """The reward as labels of this kind allow it: gains are linear in estimated relevances, which may be any number from 0.

    A metric that asks which items are relevant is refused for them: an estimated relevance does not say.
    """
    if label_kind != "relevances" or not isinstance(reward, RewardExpression):
        return reward
    binary = binary_metrics(reward)
    if binary:
        graded = " or ".join(name for name, metric in METRICS.items() if metric.reads == "gains")
        raise RankPolicyError(
            f"{binary[0]} asks which items are relevant, which relevances estimated from clicks do not say. Make the dataset from whole "
            f"sessions, by='query', or take {graded}."
        )
    return replace(reward, conventions=replace(reward.conventions, gain="linear", relevant_from=LEAST_RELEVANCE))
