"""Pointwise regression of labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.objectives.value import ObjectiveValue, item_weights
from rankpolicy.settings import documented, setting


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredError:
    """(score - label)^2, mean over items."""

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
        errors, weights = (scores - batch.labels)[batch.mask].square(), item_weights(batch)
        loss = (errors if weights is None else errors * weights).mean()
        return ObjectiveValue(loss, float(loss.detach()))
