"""LambdaMART: gradient-boosted trees on LambdaRank gradients, by LightGBM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.data.stored.pages import MappedPages, new_numbers, parts_of
from rankpolicy.rankers.trees.boosting import TreeObjective, TreeRanker
from rankpolicy.rankers.trees.streamed import Gradients
from rankpolicy.settings import documented, setting
from rankpolicy.types import RankPolicyError

_MOST_ITEMS = 10_000
_QUERIES_AT_ONCE = 1 << 15


@final
@documented
@dataclass(kw_only=True, eq=False, repr=False)
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
        return _Lambdas(self._gradients(train, None)[0]) if train.label_kind == "relevances" else None

    def _gradients(self, train: RankingDataset, objective: TreeObjective | None) -> tuple[Gradients, float]:
        from rankpolicy.kernels.trees import lambda_gradients

        weights = np.ones(train.num_queries) if train.query_weights is None else train.query_weights
        weights = np.asarray(weights / weights.mean(), np.float64)
        kind = np.float32 if train.label_kind == "relevances" else np.uint8  # grades are whole numbers up to 30
        labels = np.concatenate([part.astype(kind) for part in parts_of(train.labels_by_query)])
        codes = train.features_by_query.codes if isinstance(train.features_by_query, StoredFeatures) else None
        gradient, hessian = (new_numbers(train.num_items, np.float32, beside=codes) for _ in range(2))

        def of_scores(scores: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            pages = MappedPages(scores, gradient, hessian)
            for first in range(0, train.num_queries, _QUERIES_AT_ONCE):
                offsets = train.query_offsets[first : first + _QUERIES_AT_ONCE + 1]
                rows = slice(int(offsets[0]), int(offsets[-1]))
                lambda_gradients(
                    scores[rows],
                    labels[rows],
                    offsets - offsets[0],
                    weights[first : first + _QUERIES_AT_ONCE],
                    gradient[rows],
                    hessian[rows],
                    truncation=self.truncation,
                )
                pages.touched(3 * gradient[rows].nbytes)
            pages.release()
            return gradient, hessian

        return of_scores, 0.0

    def _check_data(self, dataset: RankingDataset) -> None:
        may_be_fractions = dataset.label_kind == "relevances"
        for labels in parts_of(dataset.labels_by_query):
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


class _Lambdas:
    """LambdaRank's gradients as an objective of LightGBM; no curve is recorded."""

    def __init__(self, gradients: Gradients) -> None:
        self._gradients = gradients
        self.history: dict[str, list[float]] = {}

    def __call__(self, scores: NDArray[np.float64], /) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gradient, hessian = self._gradients(scores.astype(np.float32))
        return gradient.astype(np.float64), hessian.astype(np.float64)
