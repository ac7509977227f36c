"""The supervised part of BanditRank's loss: what guides the network while sampled lists explore little of what is possible.

Each loss compares the affinities a = sigmoid(score) of items with their relevance r, which is 1 or 0, or estimated from clicks.

Supervised losses: how far scores are from the labels of a list, or of each item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from rankpolicy.data.batches import Batch
from rankpolicy.declarations.settings import frozen_settings, setting
from rankpolicy.declarations.values import SettingsValue, ValueKind
from rankpolicy.objectives.members import SUPERVISED_LOSSES
from rankpolicy.objectives.value import ObjectiveValue

_NEVER = -1e30  # a score of padding: finite, not -inf, because 0 * -inf would be NaN


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelLoss(ABC):
    """A loss of scores and labels that is reported as it is."""

    per_policy: ClassVar[tuple[str, ...]] = ()

    report_name: str = setting("loss", "Name of the number that is reported after each epoch.")

    @abstractmethod
    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        """The loss, which autograd follows.

        Parameters
        ----------
        scores
            Scores (query, item).
        batch
            The queries: labels, mask, weights.
        """

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
        loss = self.loss(scores, batch)
        return ObjectiveValue(loss, loss.detach())


@frozen_settings
class ListNetCrossEntropy(LabelLoss):
    """-sum_i softmax(labels)_i log softmax(scores)_i, mean over queries: top-one probabilities compared (Cao et al. 2007)."""

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        target = batch.labels.masked_fill(~batch.mask, _NEVER).softmax(-1)
        return batch.mean_over_queries(-(target * _log_choice(scores, batch)).sum(-1))


@frozen_settings
class SoftmaxCrossEntropy(LabelLoss):
    """-sum_i labels_i log softmax(scores)_i, mean over queries (Ai et al. 2018; Bruch et al. 2019).

    Labels are clicks, or relevances estimated from clicks; a query without clicks contributes nothing.
    """

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        return batch.mean_over_queries(
            -(batch.labels.masked_fill(~batch.mask, 0.0) * _log_choice(scores, batch)).sum(-1)
        )


@frozen_settings
class SigmoidCrossEntropy(LabelLoss):
    """-[r log a + (1 - r) log(1 - a)], r the label and a = sigmoid(score), mean over items.

    The loss is linear in r, so that it is unbiased if labels are unbiased estimates of relevance (Saito et al. 2020). Such estimates may
    exceed 1, and for labels above 1 the loss is unbounded below: average relevances over many sessions, clip them, or stop early by
    validation data.
    """

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        of_items = binary_cross_entropy_with_logits(scores, batch.labels.to(scores.dtype), reduction="none")
        return batch.mean_over_items(of_items)


@frozen_settings
class SquaredError(LabelLoss):
    """(score - label)^2, mean over items."""

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        return batch.mean_over_items((scores - batch.labels).square())


def _log_choice(scores: Tensor, batch: Batch) -> Tensor:
    """log softmax(scores) (query, item), 0 on padding."""
    return scores.masked_fill(~batch.mask, _NEVER).log_softmax(-1).masked_fill(~batch.mask, 0.0)


@frozen_settings
class SupervisedLoss(SettingsValue, ABC):
    """A loss of affinities, and what is done with queries without relevant items."""

    is_bounded: ClassVar[bool] = True  # also for estimated relevances above 1

    empty_penalty: float = setting(
        0.0,
        """Weight of affinities above 0.5 in queries without relevant items. At 0 such queries are left out of training; above 0 they
        teach the network to give low affinities when nothing is relevant.""",
        at_least=0,
    )

    @abstractmethod
    def loss(self, scores: Tensor, batch: Batch, relevance: Tensor) -> Tensor:
        """The loss, a scalar that autograd follows.

        Parameters
        ----------
        scores
            Scores (query, item).
        batch
            The queries: labels, mask, weights.
        relevance
            Relevance of each item (query, item).
        """


@final
@frozen_settings
class CrossEntropyLoss(SupervisedLoss):
    """-[r log a + (1 - r) log(1 - a)], mean over items: the paper's binary cross entropy, item by item."""

    name: ClassVar[str] = "cross_entropy"
    is_bounded: ClassVar[bool] = False

    def loss(self, scores: Tensor, batch: Batch, relevance: Tensor) -> Tensor:
        return SigmoidCrossEntropy().loss(scores, replace(batch, labels=relevance))


@final
@frozen_settings
class SoftmaxLoss(SupervisedLoss):
    """-sum_i r_i log(a_i / sum_j a_j), mean over queries: how unlikely the policy is to choose relevant items first."""

    name: ClassVar[str] = "softmax"

    def loss(self, scores: Tensor, batch: Batch, relevance: Tensor) -> Tensor:
        return SoftmaxCrossEntropy().loss(logsigmoid(scores), replace(batch, labels=relevance))


@final
@frozen_settings
class ListNetLoss(SupervisedLoss):
    """-sum_i softmax(labels)_i log(a_i / sum_j a_j), mean over queries (Cao et al. 2007): reads grades, not only relevance."""

    name: ClassVar[str] = "list_net"

    def loss(self, scores: Tensor, batch: Batch, relevance: Tensor) -> Tensor:
        return ListNetCrossEntropy().loss(logsigmoid(scores), batch)


@final
@frozen_settings
class SquaredLoss(SupervisedLoss):
    """(a - r)², mean over items: the Brier score of affinities, which punishes a single wrong label less than the cross entropy."""

    name: ClassVar[str] = "squared"

    def loss(self, scores: Tensor, batch: Batch, relevance: Tensor) -> Tensor:
        return SquaredError().loss(torch.sigmoid(scores), replace(batch, labels=relevance))


SUPERVISED: ValueKind[SupervisedLoss] = ValueKind(
    setting="loss", members=SUPERVISED_LOSSES, package="rankpolicy.objectives"
)
