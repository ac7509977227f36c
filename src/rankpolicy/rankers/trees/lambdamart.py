"""LambdaMART: gradient-boosted trees on LambdaRank gradients, by LightGBM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.stored.pages import parts_of
from rankpolicy.rankers.trees.boosting import TreeObjective, TreeRanker
from rankpolicy.rankers.trees.streamed import Gradients
from rankpolicy.settings import documented, setting
from rankpolicy.types import RankPolicyError

_MOST_ITEMS = 10_000


@final
@documented
@dataclass(kw_only=True, eq=False, repr=False)
class LambdaMART(TreeRanker):
    """LambdaMART (Burges 2010), by LightGBM; labels must be whole numbers from 0 to 30."""

    name: ClassVar[str] = "lambdamart"

    truncation: int = setting(
        30, "Pairs of items count when at least one of the two is ranked among the first so many.", at_least=1
    )

    def _parameters(self) -> dict[str, Any]:
        return super()._parameters() | {
            "objective": "lambdarank",
            "lambdarank_truncation_level": self.truncation,
        }

    def _gradients(self, train: RankingDataset, objective: TreeObjective | None) -> tuple[Gradients, float]:
        from rankpolicy.kernels.trees import lambda_gradients

        weights = np.ones(train.num_queries) if train.query_weights is None else train.query_weights
        labels = np.concatenate([part.astype(np.uint8) for part in parts_of(train.labels)])  # whole numbers up to 30
        gradient, hessian = np.empty(train.num_items, np.float32), np.empty(train.num_items, np.float32)

        def of_scores(scores: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            lambda_gradients(
                scores,
                labels,
                train.offsets,
                np.asarray(weights / weights.mean(), np.float64),
                gradient,
                hessian,
                truncation=self.truncation,
            )
            return gradient, hessian

        return of_scores, 0.0

    def _check_data(self, dataset: RankingDataset) -> None:
        for labels in parts_of(dataset.labels):
            wrong = labels[(labels != np.round(labels)) | (labels > 30)]
            if len(wrong):
                raise RankPolicyError(
                    f"LambdaMART needs whole-number labels from 0 to 30; got {wrong[0]:g}. Map grades to 0, 1, 2, ..."
                )
        if dataset.sizes.max() > _MOST_ITEMS:
            longest = int(dataset.sizes.argmax())
            raise RankPolicyError(
                f"LambdaMART needs queries of at most {_MOST_ITEMS} items, LightGBM's limit; query {dataset.query_ids[longest]} has "
                f"{dataset.sizes[longest]}. Split or shorten it, or use BoostedPolicy, which has no limit."
            )
