"""The supervised part of BanditRank's loss: what guides the network while sampled lists explore little of what is possible.

Each loss compares the affinities a = sigmoid(score) of items with their relevance r, which is 1 or 0, or estimated from clicks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rankpolicy.data.batches import Batch
from rankpolicy.declarations.settings import documented, setting
from rankpolicy.declarations.values import SettingsValue, ValueKind
from rankpolicy.objectives.label_losses import (
    ListNetCrossEntropy,
    SigmoidCrossEntropy,
    SoftmaxCrossEntropy,
    SquaredError,
)
from rankpolicy.objectives.members import SUPERVISED_LOSSES


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
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
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEntropyLoss(SupervisedLoss):
    """-[r log a + (1 - r) log(1 - a)], mean over items: the paper's binary cross entropy, item by item."""

    name: ClassVar[str] = "cross_entropy"
    is_bounded: ClassVar[bool] = False

    def loss(self, scores: Tensor, batch: Batch, relevance: Tensor) -> Tensor:
        return SigmoidCrossEntropy().loss(scores, replace(batch, labels=relevance))


@final
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxLoss(SupervisedLoss):
    """-sum_i r_i log(a_i / sum_j a_j), mean over queries: how unlikely the policy is to choose relevant items first."""

    name: ClassVar[str] = "softmax"

    def loss(self, scores: Tensor, batch: Batch, relevance: Tensor) -> Tensor:
        return SoftmaxCrossEntropy().loss(logsigmoid(scores), replace(batch, labels=relevance))


@final
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ListNetLoss(SupervisedLoss):
    """-sum_i softmax(labels)_i log(a_i / sum_j a_j), mean over queries (Cao et al. 2007): reads grades, not only relevance."""

    name: ClassVar[str] = "list_net"

    def loss(self, scores: Tensor, batch: Batch, relevance: Tensor) -> Tensor:
        return ListNetCrossEntropy().loss(logsigmoid(scores), batch)


@final
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredLoss(SupervisedLoss):
    """(a - r)², mean over items: the Brier score of affinities, which punishes a single wrong label less than the cross entropy."""

    name: ClassVar[str] = "squared"

    def loss(self, scores: Tensor, batch: Batch, relevance: Tensor) -> Tensor:
        return SquaredError().loss(torch.sigmoid(scores), replace(batch, labels=relevance))


SUPERVISED: ValueKind[SupervisedLoss] = ValueKind(
    setting="loss", members=SUPERVISED_LOSSES, package="rankpolicy.objectives"
)
