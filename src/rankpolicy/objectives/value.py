"""What an objective returns, and the face all of them share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from torch import Tensor

from rankpolicy.data.batches import Batch


@dataclass(frozen=True, slots=True, eq=False)
class ObjectiveValue:
    """A loss to descend, and the number a person wants to watch meanwhile; both count queries by their weights, where these are given."""

    loss: Tensor  # scalar; its gradient is what counts
    report: float  # mean over queries of the reward (higher is better) or of the loss
    parts: Mapping[str, float] = field(default_factory=dict)  # more such means, by name


def ascent_loss(scores: Tensor, gradient: Tensor, batch: Batch, *, share: float = 1.0) -> Tensor:
    """-share * sum of scores * gradient (query, item), mean over queries: descending it ascends along the gradient, which autograd takes
    on to the weights of the network.
    """
    pull = gradient if batch.query_weights is None else gradient * batch.query_weights[:, None]
    return -share * (scores * pull).sum() / len(scores)


def choice_entropy(scores: Tensor, batch: Batch) -> Tensor:
    """Entropy of softmax(scores), the policy's first choice, mean over queries."""
    # Finite, not -inf: 0 * -inf would be NaN.
    log_choice = scores.masked_fill(~batch.mask, -1e30).log_softmax(-1)
    entropy = log_choice.exp() * log_choice
    if batch.query_weights is not None:
        entropy = entropy * batch.query_weights[:, None]
    return -entropy.sum() / len(scores)


def item_weights(batch: Batch) -> Tensor | None:
    """The weights of their queries, for the real items (items,); None without weights.

    A mean of weighted items is over their number, not their weights: a batch of light queries then counts as little as it should.
    """
    if batch.query_weights is None:
        return None
    return batch.query_weights[:, None].expand(batch.mask.shape)[batch.mask]


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
