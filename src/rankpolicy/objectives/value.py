"""What an objective returns, and the face all of them share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from torch import Tensor

from rankpolicy.data.batches import Batch


@dataclass(frozen=True, slots=True, eq=False)
class ObjectiveValue:
    """A loss to descend, and the number a person wants to watch meanwhile."""

    loss: Tensor  # scalar; its gradient is what counts
    report: float  # mean over queries of the reward (higher is better) or of the loss
    parts: Mapping[str, float] = field(default_factory=dict)  # more such means, by name


def choice_entropy(scores: Tensor, mask: Tensor) -> Tensor:
    """Entropy of softmax(scores), the policy's first choice, mean over queries."""
    # Finite, not -inf: 0 * -inf would be NaN.
    log_choice = scores.masked_fill(~mask, -1e30).log_softmax(-1)
    return -(log_choice.exp() * log_choice).sum() / len(scores)


class Objective(Protocol):
    """scores (query, item) of a batch -> what training minimises."""

    @property
    def report_name(self) -> str: ...

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue: ...


@runtime_checkable
class ScheduledObjective(Objective, Protocol):
    """An objective that changes from epoch to epoch."""

    def at_epoch(self, epoch: int) -> Objective:
        """What is minimised when this many epochs are done."""
        ...
