"""Pointwise regression with boosted trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankpolicy.declarations.settings import documented
from rankpolicy.rankers.trees.boosting import TreeRanker


@final
@documented
@dataclass(kw_only=True, eq=False, repr=False)
class BoostedRegression(TreeRanker):
    """Predict the label of each item with gradient-boosted trees (Friedman 2001, by LightGBM) and rank by the prediction."""

    name: ClassVar[str] = "boosted-regression"
    learns_from_single_items: ClassVar[bool] = True

    def _parameters(self) -> dict[str, Any]:
        return super()._parameters() | {"objective": "regression"}
