"""Pointwise regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankpolicy.objectives import SquaredError
from rankpolicy.rankers.network import NetworkRanker


@final
@dataclass(kw_only=True, eq=False, repr=False)
class Regression(NetworkRanker):
    """Predict the label of each item by least squares, and rank by the prediction."""

    name: ClassVar[str] = "regression"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"model": "linear"},
        {"model": "linear", "learning_rate": 1e-2},
        {"hidden": (32,), "dropout": 0.0},
        {"learning_rate": 3e-4},
    )

    def _objective(self) -> SquaredError:
        return SquaredError()
