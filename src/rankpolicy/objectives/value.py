"""The interface of objectives, what they return, and what several of them compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from rankpolicy.data.batches import Batch


@dataclass(frozen=True, slots=True, eq=False)
class ObjectiveValue:
    """A loss to minimise and the numbers to show meanwhile; all of them weigh queries by their weights if there are some.

    Parameters
    ----------
    loss
        A scalar; its gradient is what trains the network.
    report
        The mean over queries of the reward (higher is better) or of the loss.
    parts
        Further means over queries, by name.
    """

    loss: Tensor
    report: float
    parts: Mapping[str, float] = field(default_factory=dict)


def item_weights(batch: Batch) -> Tensor | None:
    """The weight of each real item (items,), that of its query; None without weights.

    Divide sums by the number of items, not by the sum of weights, so that a batch of low-weight queries counts less.
    """
    if batch.query_weights is None:
        return None
    return batch.query_weights[:, None].expand(batch.mask.shape)[batch.mask]


class Objective(Protocol):
    """What training minimises: a function of the scores (query, item) of a batch."""

    @property
    def report_name(self) -> str:
        """Name of the number that is reported after each epoch."""
        ...

    def __call__(self, scores: Tensor, batch: Batch, *, generator: torch.Generator | None = None) -> ObjectiveValue:
        """The loss of these scores; rankings are drawn from the generator."""
        ...


@runtime_checkable
class ScheduledObjective(Objective, Protocol):
    """An objective that changes from epoch to epoch."""

    def at_epoch(self, epoch: int, parts: Mapping[str, Sequence[float]]) -> Objective:
        """What is minimised in the next epoch.

        Parameters
        ----------
        epoch
            How many epochs are done.
        parts
            The parts that were reported, by name, one number per epoch.
        """
        ...
