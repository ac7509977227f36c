"""Checks of training data whose labels come from clicks."""

from __future__ import annotations

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.types import RankPolicyError


def check_loss_is_bounded(train: RankingDataset, *, loss: str, instead: str) -> None:
    """Refuse relevances estimated from single clicks, all 1 or more, for a loss that is then unbounded below."""
    if train.label_kind != "relevances":
        return
    clicked = train.labels_by_query[train.labels_by_query > 0]
    if len(clicked) and clicked.min() >= 1 and clicked.max() > 1:
        raise RankPolicyError(
            f"for labels above 1 {loss} is unbounded below, and the inverse propensities of single clicks are all 1 or more: {instead}."
        )
