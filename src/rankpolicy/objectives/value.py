"""What an objective returns, and the face all of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from rankpolicy.data.batches import Batch


@dataclass(frozen=True, slots=True, eq=False)
class ObjectiveValue:
    """A loss to descend, and the number a person wants to watch meanwhile."""

    loss: Tensor  # scalar; its gradient is what counts
    report: float  # mean over queries of the reward (higher is better) or of the loss


class Objective(Protocol):
    """scores (query, item) of a batch -> what training minimises."""

    @property
    def report_name(self) -> str: ...

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue: ...
