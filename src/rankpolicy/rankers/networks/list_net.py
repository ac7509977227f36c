"""ListNet, and DELTR: ListNet with a penalty on unequal exposure at the first rank."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.settings import setting, setting_of, settings_class, share_settings
from rankpolicy.objectives import ListNetCrossEntropy
from rankpolicy.objectives.deltr import DELTRLoss, DELTRSettings
from rankpolicy.rankers.fits import FitOptions, FitSteps
from rankpolicy.rankers.networks.network import NetworkRanker
from rankpolicy.types import RankPolicyError


@final
@settings_class
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


@final
@settings_class
class DELTR(NetworkRanker, DELTRSettings):
    """ListNet with a penalty when a protected group has less exposure at the first rank than the others (Zehlike & Castillo 2020)."""

    name: ClassVar[str] = "deltr"
    compares_groups: ClassVar[bool] = True

    protected_group: Any = setting(1, "Which of the values given as ``protected`` is the protected group.")
    model: Any = setting_of(NetworkRanker, "model", default="linear")
    scaling: str = setting_of(NetworkRanker, "scaling", default="standardize")

    def _check_settings(self) -> None:
        super()._check_settings()
        if hasattr(self.protected_group, "__len__") and not isinstance(self.protected_group, str | bytes):
            raise RankPolicyError(
                f"protected_group must be one value, such as 1 or 'f'; got {self.protected_group!r:.80}."
            )

    def _training(self, train: RankingDataset, valid: RankingDataset | None, options: FitOptions) -> FitSteps:
        groups = [] if train.groups_by_query is None else np.unique(train.groups_by_query).tolist()
        if self.protected_group not in groups:
            raise RankPolicyError(
                f"protected_group must be one of the groups of the training data, {groups or 'which has none'}; "
                f"got {self.protected_group!r}. "
                "Pass protected= (one value per row) to fit, and the protected one of them as protected_group=."
            )
        self._protected_code = groups.index(self.protected_group)
        yield from super()._training(train, valid, options)

    def _objective(self, train: RankingDataset) -> DELTRLoss:
        return share_settings(DELTRLoss, self, protected=self._protected_code)
