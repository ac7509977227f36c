"""The cross entropy of clicks: which item of the list is the wanted one."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.objectives.value import ObjectiveValue


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxCrossEntropy:
    """-sum_i labels_i log softmax(scores)_i, mean over queries (Ai et al. 2018; Bruch et al. 2019).

    Labels are clicks, or relevances estimated from clicks; a query without any says nothing.
    """

    report_name: str = "loss"

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue:
        # Finite, not -inf: 0 * -inf in the product below would be NaN.
        log_choice = scores.masked_fill(~batch.mask, -1e30).log_softmax(-1).masked_fill(~batch.mask, 0.0)
        loss = batch.mean_over_queries(-(batch.labels.masked_fill(~batch.mask, 0.0) * log_choice).sum(-1))
        return ObjectiveValue(loss, float(loss.detach()))
