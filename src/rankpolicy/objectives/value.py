"""The interface of objectives, what they return, and what several of them compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, runtime_checkable

from rankpolicy.arrays import Array, Generator, as_like
from rankpolicy.data.batches import Batch


@dataclass(frozen=True, slots=True, eq=False)
class ObjectiveValue:
    """A loss to minimise and the numbers to show meanwhile; all of them weigh queries by their weights if there are some.

    All are scalars, or (policy,) where the batch is ranked by several policies. They stay on the device, so that nothing waits for it.

    Parameters
    ----------
    loss
        Its gradient is what trains the network.
    report
        The mean over queries of the reward (higher is better) or of the loss.
    parts
        Further means over queries, by name.
    coefficients
        Where the objective is a function of exposure: its derivative in the exposure of each item (query, item).
    """

    loss: Array
    report: Array
    parts: Mapping[str, Array] = field(default_factory=dict)
    coefficients: Array | None = None


class Objective(Protocol):
    """What training minimises: a function of the scores (query, item) of a batch."""

    @property
    def report_name(self) -> str:
        """Name of the number that is reported after each epoch."""
        ...

    def __call__(self, scores: Array, batch: Batch, *, generator: Any = None) -> ObjectiveValue:
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


@runtime_checkable
class AscentObjective(Objective, Protocol):
    """An objective that can give its slopes in the scores without autograd."""

    def with_slope(
        self, scores: Array, batch: Batch, *, generator: Generator | None = None
    ) -> tuple[ObjectiveValue, Array]:
        """The value and dloss/dscores (query, item), summed over policies."""
        ...


def value_and_slope(
    objective: Objective, scores: Array, batch: Batch, *, generator: Generator | None = None
) -> tuple[ObjectiveValue, Array]:
    """The value of an objective and dloss/dscores (query, item), summed over policies."""
    if isinstance(objective, AscentObjective):
        return objective.with_slope(scores, batch, generator=generator)
    import torch

    leaf = scores.detach().requires_grad_()
    value = objective(leaf, batch, generator=generator)
    (slope,) = torch.autograd.grad(value.loss.sum(), leaf)
    return value, slope


def can_merge(first: Objective, second: Objective) -> bool:
    """Whether policies with these objectives can be trained in one batch: the objectives differ in numbers of a policy only."""
    per_policy = getattr(first, "per_policy", None)
    if per_policy is None or type(first) is not type(second):
        return False
    if not (getattr(first, "is_separable", True) and getattr(second, "is_separable", True)):
        return False
    return all(
        getattr(first, field.name) == getattr(second, field.name)
        for field in fields(first)  # type: ignore[arg-type]
        if field.name not in per_policy
    )


def merged(objectives: Sequence[Objective], like: Array) -> Objective:
    """One objective for a batch that is ranked by several policies, each with its own numbers."""
    first = objectives[0]
    numbers = {
        name: [getattr(objective, name) for objective in objectives] for name in getattr(first, "per_policy", ())
    }
    differing = {name: values for name, values in numbers.items() if len(set(values)) > 1}
    if not differing:
        return first
    together = copy(first)
    for name, values in differing.items():
        object.__setattr__(together, name, as_like(values, like))
    return together
