"""LambdaMART: gradient-boosted trees on LambdaRank gradients, by LightGBM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.rankers.trees.boosting import TreeRanker
from rankpolicy.settings import documented, setting
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    import lightgbm

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

    def _lightgbm_data(self, dataset: RankingDataset, *, reference: Any = None) -> lightgbm.Dataset:
        fractional = dataset.labels != np.round(dataset.labels)
        if fractional.any() or dataset.labels.max() > 30:
            raise RankPolicyError(
                "LambdaMART needs whole-number labels from 0 to 30; "
                f"got {dataset.labels[fractional][0] if fractional.any() else dataset.labels.max():g}. Map grades to 0, 1, 2, ..."
            )
        if dataset.sizes.max() > _MOST_ITEMS:
            longest = int(dataset.sizes.argmax())
            raise RankPolicyError(
                f"LambdaMART needs queries of at most {_MOST_ITEMS} items, LightGBM's limit; query {dataset.query_ids[longest]} has "
                f"{dataset.sizes[longest]}. Split or shorten it, or use BoostedPolicy, which has no limit."
            )
        return super()._lightgbm_data(dataset, reference=reference)
