"""LambdaMART: gradient-boosted trees on LambdaRank gradients, by LightGBM."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import setting, settings_class
from rankpolicy.rankers.trees.boosting import TreeObjective, TreeRanker
from rankpolicy.types import RankPolicyError

_MOST_ITEMS = 10_000


@final
@settings_class
class LambdaMART(TreeRanker):
    """LambdaMART (Burges 2010), by LightGBM; labels are whole numbers from 0 to 30, or relevances estimated from clicks."""

    name: ClassVar[str] = "lambdamart"
    learns_from_relevances: ClassVar[bool] = True

    truncation: int = setting(
        30, "Pairs of items count when at least one of the two is ranked among the first so many.", at_least=1
    )

    def _parameters(self) -> dict[str, Any]:
        return super()._parameters() | {
            "objective": "lambdarank",
            "lambdarank_truncation_level": self.truncation,
        }

    def _objective(self, train: RankingDataset) -> TreeObjective | None:
        # LightGBM's own lambdarank takes whole-number labels only, so fractions go through our gradients, which equal its.
        return _LambdaObjective(train, self.truncation) if train.label_kind == "relevances" else None

    def _check_data(self, dataset: RankingDataset) -> None:
        may_be_fractions = dataset.label_kind == "relevances"
        for labels in dataset.label_blocks():
            wrong = labels[((labels != np.round(labels)) & (not may_be_fractions)) | (labels > 30)]
            if len(wrong):
                if may_be_fractions:
                    raise RankPolicyError(
                        f"LambdaMART needs relevances from 0 to 30; got {wrong[0]:g}. Scale them to 0 to 1."
                    )
                raise RankPolicyError(
                    f"LambdaMART needs whole-number labels from 0 to 30; got {wrong[0]:g}. Map grades to 0, 1, 2, ..."
                )
        if dataset.sizes.max() > _MOST_ITEMS:
            longest = int(dataset.sizes.argmax())
            raise RankPolicyError(
                f"LambdaMART needs queries of at most {_MOST_ITEMS} items, LightGBM's limit; query {dataset.query_ids[longest]} has "
                f"{dataset.sizes[longest]}. Split or shorten it, or use BoostedPolicy, which has no limit."
            )


class _LambdaObjective:
    """LambdaRank on fractional labels; it records no curve."""

    def __init__(self, train: RankingDataset, truncation: int) -> None:
        weights = np.ones(train.num_queries) if train.query_weights is None else train.query_weights
        self._query_weights = np.asarray(weights / weights.mean(), np.float64)
        self._labels, self._offsets, self._truncation = (
            np.asarray(train.labels_by_query),
            train.query_offsets,
            truncation,
        )
        self.history: dict[str, list[float]] = {}

    def __call__(self, scores: NDArray[np.float64], /) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        from rankpolicy.kernels.lambdarank import lambda_gradients

        return lambda_gradients(scores, self._labels, self._offsets, self._query_weights, truncation=self._truncation)
