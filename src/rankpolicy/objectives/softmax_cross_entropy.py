"""Softmax cross entropy: which item of the list is clicked."""

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
class SoftmaxCrossEntropy:
    """-sum_i labels_i log softmax(scores)_i, mean over queries (Ai et al. 2018; Bruch et al. 2019).

    Labels are clicks, or relevances estimated from clicks; a query without clicks contributes nothing.
    """

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
        # Finite, not -inf: 0 * -inf in the product below would be NaN.
        log_choice = scores.masked_fill(~batch.mask, -1e30).log_softmax(-1).masked_fill(~batch.mask, 0.0)
        loss = batch.mean_over_queries(-(batch.labels.masked_fill(~batch.mask, 0.0) * log_choice).sum(-1))
        return ObjectiveValue(loss, loss.detach())
