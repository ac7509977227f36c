"""The cross entropy of each item alone: is it wanted or not."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from rankpolicy.data.batches import Batch
from rankpolicy.objectives.value import ObjectiveValue, item_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class SigmoidCrossEntropy:
    """-[r log a + (1 - r) log(1 - a)], r the label and a = sigmoid(score), mean over items.

    Linear in r: where labels are unbiased estimates of relevance, which may exceed 1, the loss is unbiased too (Saito et al. 2020).
    But an item whose label exceeds 1 has no least loss: a network that can tell it from all others raises its score without end, so let
    relevances be means over many sessions, clip them, or stop by validation data.
    """

    report_name: str = "loss"

    def __call__(self, scores: Tensor, batch: Batch) -> ObjectiveValue:
        loss = binary_cross_entropy_with_logits(
            scores[batch.mask], batch.labels[batch.mask].to(scores.dtype), weight=item_weights(batch)
        )
        return ObjectiveValue(loss, float(loss.detach()))
