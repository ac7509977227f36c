"""Matching Cross Network: query and item texts matched, crossed with side information, learned from clicks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, final

from rankpolicy.data.click_evidence import NO_CLICK
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import setting, setting_of, settings_class
from rankpolicy.objectives import (
    ListNetCrossEntropy,
    Objective,
    SigmoidCrossEntropy,
    SoftmaxCrossEntropy,
    SquaredError,
)
from rankpolicy.rankers.fit_inputs import check_loss_is_bounded
from rankpolicy.rankers.networks.network import NetworkRanker

LOSSES: dict[str, Callable[[], Objective]] = {
    "softmax": SoftmaxCrossEntropy,
    "sigmoid": SigmoidCrossEntropy,
    "squared": SquaredError,
    "listnet": ListNetCrossEntropy,
}


@final
@settings_class
class MatchingCross(NetworkRanker):
    """Rank by a network over texts and side columns, trained on click tables by ``loss`` (Matching Cross Network).

    Other ways to join query, item and side columns are the models "deep-matching-cross", "match", "latent-cross", "concatenation",
    "concatenation-cross" and "cross-network".

    Weight the click table with ``weighted_by_propensity`` so that position bias cancels; ``click_report_`` then holds the effective sample
    size. Queries without a click are left out of training; ``report_`` says how many.
    """

    name: ClassVar[str] = "matching-cross"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"learning_rate": 1e-3}, {"model__dropout": 0.3})
    fitted_attributes: ClassVar[tuple[str, ...]] = (*NetworkRanker.fitted_attributes, "report_")

    loss: str = setting(
        "softmax",
        """What is minimised: "softmax" (which item of the list is clicked), "sigmoid" or "squared" (each item by itself), or
        "listnet".""",
        choices=LOSSES,
    )
    model: Any = setting_of(NetworkRanker, "model", default="matching-cross")
    epochs: int = setting_of(NetworkRanker, "epochs", default=50)
    batch_queries: int = setting_of(NetworkRanker, "batch_queries", default=128)
    learning_rate: float = setting_of(NetworkRanker, "learning_rate", default=3e-3)
    patience: int | None = setting_of(NetworkRanker, "patience", default=5)
    valid_metric: Any = setting_of(NetworkRanker, "valid_metric", default="mrr")

    def _objective(self, train: RankingDataset) -> Objective:
        return LOSSES[self.loss]()

    def _trainable(self, train: RankingDataset) -> RankingDataset:
        if self.loss == "sigmoid":
            check_loss_is_bounded(train, loss="the sigmoid loss", instead="weight by='query', or choose loss='softmax'")
        with_click, num_dropped = train.drop_queries_without_relevant_items(relevant_from=1e-9)
        # Weighting has left out the queries without a click already.
        before = 0 if train.click_evidence is None else train.click_evidence.queries_left_out.get(NO_CLICK, 0)
        self.report_ = {"queries_left_out": {NO_CLICK: before + num_dropped}}
        return with_click
