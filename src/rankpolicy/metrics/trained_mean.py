"""``trained_mean(ap, ndcg@10)``: a mean of metrics whose weights are trained, written as a text."""

from __future__ import annotations

import re
from dataclasses import replace

from rankpolicy.metrics.expression import RewardExpression
from rankpolicy.types import RankPolicyError

_NOT_FROM_0_TO_1 = ("dcg", "avg_rank")


def inside_trained_mean(text: str) -> str | None:
    """What stands between the brackets of ``trained_mean(...)``, if the text is that and nothing else."""
    found = re.fullmatch(r"\s*trained_mean\s*\((.*)\)\s*", text, re.IGNORECASE | re.DOTALL)
    if found is None:
        return None
    depth = 0
    for sign in found[1]:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return None
    return found[1]


def with_trained_weights(mean: RewardExpression) -> RewardExpression:
    """The mean as a reward whose weights BanditRank trains; metrics must lie between 0 and 1."""
    unbounded = [str(leaf) for leaf in mean.leaves if leaf.metric in _NOT_FROM_0_TO_1]
    if not mean.is_linear or any(term.weight <= 0 for term in mean.terms) or len(mean.leaves) < 2 or unbounded:
        raise RankPolicyError(
            "trained_mean(...) must hold two or more different metrics between 0 and 1, such as trained_mean(ap, ndcg@10): its weights "
            f"are trained by how much is missing to 1; got 'trained_{mean.name}'."
        )
    return replace(mean, name=f"trained_{mean.name}", trained=True)
