"""Pointwise regression of labels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from rankpolicy.objectives.value import ObjectiveValue


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredError:
    """(score - label)^2, mean over items."""

    report_name: str = "loss"

    def __call__(self, scores: Tensor, labels: Tensor, mask: Tensor) -> ObjectiveValue:
        loss = (scores - labels)[mask].square().mean()
        return ObjectiveValue(loss, float(loss.detach()))
