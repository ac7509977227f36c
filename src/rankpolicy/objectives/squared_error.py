"""Pointwise regression of labels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.objectives.value import ObjectiveValue, item_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredError:
    """(score - label)^2, mean over items."""

    report_name: str = "loss"

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue:
        errors, weights = (scores - batch.labels)[batch.mask].square(), item_weights(batch)
        loss = (errors if weights is None else errors * weights).mean()
        return ObjectiveValue(loss, float(loss.detach()))
