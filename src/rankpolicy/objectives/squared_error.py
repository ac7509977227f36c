"""Pointwise regression of labels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.objectives.value import ObjectiveValue


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredError:
    """(score - label)^2, mean over items."""

    report_name: str = "loss"

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue:
        loss = (scores - batch.labels)[batch.mask].square().mean()
        return ObjectiveValue(loss, float(loss.detach()))
