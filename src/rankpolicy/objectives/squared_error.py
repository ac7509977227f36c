"""Pointwise regression of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.declarations.settings import documented, setting
from rankpolicy.objectives.value import ObjectiveValue


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredError:
    """(score - label)^2, mean over items."""

    per_policy: ClassVar[tuple[str, ...]] = ()

    report_name: str = setting("loss", "Name of the number that is reported after each epoch.")

    def __call__(self, scores: Tensor, batch: Batch, *, generator: torch.Generator | None = None) -> ObjectiveValue:
        """The loss of these scores.

        Parameters
        ----------
        scores
            Scores (query, item).
        batch
            The queries: labels, mask, weights.
        generator
            Not used: nothing here is random.
        """
        loss = batch.mean_over_items((scores - batch.labels).square())
        return ObjectiveValue(loss, loss.detach())
