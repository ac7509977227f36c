"""DELTR's loss: ListNet's cross entropy and a penalty on unequal chances of being ranked first."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.declarations.settings import check_settings, setting, settings_class
from rankpolicy.objectives.supervised_losses import ListNetCrossEntropy
from rankpolicy.objectives.value import ObjectiveValue
from rankpolicy.types import RankPolicyError


@dataclass(kw_only=True, eq=False, repr=False)
class DELTRSettings:
    """What DELTR and its objective have in common."""

    strength: float = setting(
        1.0,
        "Weight of the penalty on the gap in exposure; useful values span many orders of magnitude, 1 to 1e6.",
        at_least=0,
    )


@settings_class
class DELTRLoss(DELTRSettings):
    """ListNet + strength * max(0, top-one exposure of the others - of the protected group)², mean over queries (Zehlike & Castillo 2020).

    The top-one exposure of a group is the mean of softmax(scores) over its members. Queries that lack one side are not penalised.
    """

    per_policy: ClassVar[tuple[str, ...]] = ("strength",)

    protected: int = setting(MISSING, "Code of the protected group, a value of ``batch.groups``.", at_least=0)
    report_name: str = setting("loss", "Name of the number that is reported after each epoch.")

    def __post_init__(self) -> None:
        check_settings(self)

    def __call__(self, scores: Tensor, batch: Batch, *, generator: torch.Generator | None = None) -> ObjectiveValue:
        """The loss of these scores.

        Parameters
        ----------
        scores
            Scores (query, item).
        batch
            The queries: labels, mask, weights, protected groups.
        generator
            Not used: nothing here is random.
        """
        if batch.groups is None:
            raise RankPolicyError(
                "DELTR needs the protected group of each item: pass protected= to fit or to the dataset."
            )
        accuracy = ListNetCrossEntropy().loss(scores, batch)
        choice = scores.masked_fill(~batch.mask, -torch.inf).softmax(-1)
        is_protected = batch.mask & (batch.groups == self.protected)
        is_other = batch.mask & ~is_protected
        gap = _mean_over(choice, is_other) - _mean_over(choice, is_protected)
        has_both = is_protected.any(-1) & is_other.any(-1)
        penalty = batch.mean_over_queries(torch.where(has_both, gap.clamp(min=0).square(), 0.0))
        loss = accuracy + self.strength * penalty
        return ObjectiveValue(loss, loss.detach())


def _mean_over(values: Tensor, members: Tensor) -> Tensor:
    return torch.where(members, values, 0.0).sum(-1) / members.sum(-1).clamp(min=1)
