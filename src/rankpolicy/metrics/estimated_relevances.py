"""Which metrics can be computed from relevances that were estimated from clicks."""

from __future__ import annotations

from dataclasses import replace

from rankpolicy.data.click_evidence import LabelKind
from rankpolicy.metrics.expression import CustomReward, RewardExpression
from rankpolicy.types import RankPolicyError

GRADED = ("dcg", "ndcg")  # metrics that read labels as gains; all others ask which items are relevant
LEAST_RELEVANCE = 1e-9


def binary_metrics(reward: RewardExpression | CustomReward) -> list[str]:
    """The metrics of a reward that ask which items are relevant."""
    if isinstance(reward, CustomReward):
        return []
    return [str(leaf) for leaf in reward.leaves if leaf.metric not in GRADED]


def reward_for_labels(
    reward: RewardExpression | CustomReward, label_kind: LabelKind
) -> RewardExpression | CustomReward:
    """The reward as labels of this kind allow it: gains are linear in estimated relevances, which may be any number from 0.

    A metric that asks which items are relevant is refused for them: an estimated relevance does not say.
    """
    if label_kind != "relevances" or isinstance(reward, CustomReward):
        return reward
    binary = binary_metrics(reward)
    if binary:
        raise RankPolicyError(
            f"{binary[0]} asks which items are relevant, which relevances estimated from clicks do not say. Make the dataset from whole "
            f"sessions, by='query', or take {' or '.join(GRADED)}."
        )
    return replace(reward, conventions=replace(reward.conventions, gain="linear", relevant_from=LEAST_RELEVANCE))
