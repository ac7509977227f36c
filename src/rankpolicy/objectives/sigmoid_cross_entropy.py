"""Sigmoid cross entropy: whether each item by itself is relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rankpolicy.data.batches import Batch
from rankpolicy.declarations.settings import documented, setting
from rankpolicy.objectives.value import ObjectiveValue


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class SigmoidCrossEntropy:
    """-[r log a + (1 - r) log(1 - a)], r the label and a = sigmoid(score), mean over items.

    The loss is linear in r, so that it is unbiased if labels are unbiased estimates of relevance (Saito et al. 2020). Such estimates may
    exceed 1, and for labels above 1 the loss is unbounded below: average relevances over many sessions, clip them, or stop early by
    validation data.
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
        of_items = binary_cross_entropy_with_logits(scores, batch.labels.to(scores.dtype), reduction="none")
        loss = batch.mean_over_items(of_items)
        return ObjectiveValue(loss, loss.detach())
