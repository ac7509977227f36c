"""ListNet's listwise cross entropy."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from rankpolicy.data.batches import Batch
from rankpolicy.objectives.value import ObjectiveValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ListNetCrossEntropy:
    """-sum_i softmax(labels)_i log softmax(scores)_i, mean over queries: top-one probabilities compared (Cao et al. 2007)."""

    report_name: str = "loss"

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue:
        # Finite, not -inf: 0 * -inf in the product below would be NaN.
        target = batch.labels.masked_fill(~batch.mask, -1e30).softmax(-1)
        log_choice = scores.masked_fill(~batch.mask, -1e30).log_softmax(-1)
        loss = batch.mean_over_queries(-(target * log_choice.masked_fill(~batch.mask, 0.0)).sum(-1))
        return ObjectiveValue(loss, float(loss.detach()))
