"""DELTR: ListNet that is penalised when a protected group has less chance of the first rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.objectives import DELTRLoss
from rankpolicy.rankers.base import Course
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.types import RankPolicyError


@final
@dataclass(kw_only=True, eq=False, repr=False)
class DELTR(NetworkRanker):
    """Zehlike & Castillo (2020), with the gradient of the penalty as stated. ``protected_group`` is the value of the protected group."""

    name: ClassVar[str] = "deltr"

    strength: float = 1.0
    protected_group: Any = 1
    model: str = "linear"
    scaling: str = "standardize"

    def _fit(self, train: RankingDataset, valid: RankingDataset | None, course: Course) -> None:
        known = [] if train.groups is None else np.unique(train.groups).tolist()
        if self.protected_group not in known:
            raise RankPolicyError(
                f"protected_group must be one of the groups of the training data, {known or 'which has none'}; "
                f"got {self.protected_group!r}. "
                "Pass protected= (a value per row) to fit, and the protected one of them as protected_group=."
            )
        self._protected_code = known.index(self.protected_group)
        super()._fit(train, valid, course)

    def _objective(self, train: RankingDataset) -> DELTRLoss:
        if self.strength < 0:
            raise RankPolicyError(f"strength must be 0 or more; got {self.strength}.")
        return DELTRLoss(protected=self._protected_code, strength=self.strength)
