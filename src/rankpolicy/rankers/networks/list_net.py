"""ListNet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import documented
from rankpolicy.objectives import ListNetCrossEntropy
from rankpolicy.rankers.networks.network import NetworkRanker


@final
@documented
@dataclass(kw_only=True, eq=False, repr=False)
class ListNet(NetworkRanker):
    """Fit softmax(scores) to softmax(labels) by cross entropy (Cao et al. 2007)."""

    name: ClassVar[str] = "listnet"
    settings_to_try: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"model": "linear"},
        {"model": "linear", "learning_rate": 1e-2},
        {"model__hidden": (32,), "model__dropout": 0.0},
        {"learning_rate": 3e-4},
    )

    def _objective(self, train: RankingDataset) -> ListNetCrossEntropy:
        return ListNetCrossEntropy()
