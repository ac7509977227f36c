"""Metrics and mixes of metrics as values: what a policy is trained on and measured by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.metrics.additive import ADDITIVE, AdditiveForm, additive_form
from rankpolicy.metrics.members import LOWER_IS_BETTER, METRICS
from rankpolicy.types import Conventions, RankPolicyError

Array = TypeVar("Array", Tensor, NDArray[Any])


@dataclass(frozen=True, slots=True)
class Leaf:
    """One metric at one cutoff, with the options it was given: ``rbp(persistence=0.5)@10``."""

    metric: str  # a key of METRICS
    cutoff: int | None = None
    options: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value:g}" for name, value in self.options)
        return self.metric + (f"({options})" if options else "") + (f"@{self.cutoff}" if self.cutoff else "")


@dataclass(frozen=True, slots=True)
class Term:
    """A weight times a product of metrics; without factors, a constant."""

    weight: float
    factors: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardExpression:
    """A sum of terms over metrics, evaluated as one reward; made by ``parse_metric``.

    Expressions are equal when they mean the same; the name keeps the words of whoever wrote it.

    >>> from rankpolicy.metrics import all_items, parse_metric
    >>> reward = parse_metric("mean(map, rr)")
    >>> reward(torch.tensor([[1, 0]]), torch.tensor([[1.0, 0.0]]), all_items(1, 2))
    tensor([0.5000])
    >>> reward == parse_metric("0.5*rr + 0.5*ap")
    True
    """

    name: str = field(compare=False)
    terms: tuple[Term, ...]
    conventions: Conventions = field(default_factory=Conventions)

    def __call__(self, rankings: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        return self.combine({leaf: self.leaf_values(leaf, rankings, labels, mask) for leaf in self.leaves})

    def combine(self, values: Mapping[Leaf, Array]) -> Array:
        """This reward from the values of its metrics, tensors or numpy arrays of one shape."""
        total = sum(term.weight * math.prod(values[leaf] for leaf in term.factors) for term in self.terms)
        return cast(Array, total)

    def leaf_values(self, leaf: Leaf, rankings: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Values (..., query) of one metric of this expression."""
        return METRICS[leaf.metric](
            rankings, labels, mask, cutoff=leaf.cutoff, conventions=self.conventions, **dict(leaf.options)
        )

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The metrics that occur, each once."""
        return tuple(dict.fromkeys(leaf for term in self.terms for leaf in term.factors))

    @property
    def cutoff(self) -> int | None:
        """The deepest position that matters; None when every position does."""
        cutoffs = [leaf.cutoff for leaf in self.leaves]
        return None if None in cutoffs else max(cutoff for cutoff in cutoffs if cutoff is not None)

    @property
    def lower_is_better(self) -> bool:
        """Whether better rankings have lower values, as with avg_rank; -avg_rank is a reward like any other."""
        return any(
            term.weight > 0 and any(leaf.metric in LOWER_IS_BETTER for leaf in term.factors) for term in self.terms
        )

    @property
    def is_linear(self) -> bool:
        """A weighted sum of metrics: no products of metrics, no constants."""
        return all(len(term.factors) == 1 for term in self.terms)

    @property
    def is_additive(self) -> bool:
        """A weighted sum of metrics that are rank weights times item values."""
        return self.is_linear and all(leaf.metric in ADDITIVE for leaf in self.leaves)

    def additive_forms(self, labels: Tensor, mask: Tensor) -> tuple[AdditiveForm, ...]:
        """Rank weights and item values that add up to this reward, a pair a term; item values carry the weights."""
        forms = []
        for term in self.terms if self.is_linear else ():
            leaf = term.factors[0]
            form = additive_form(
                leaf.metric, labels, mask, cutoff=leaf.cutoff, conventions=self.conventions, **dict(leaf.options)
            )
            if form is not None:
                forms.append(AdditiveForm(form.rank_weights, term.weight * form.item_values))
        if len(forms) < len(self.terms):
            raise RankPolicyError(
                f"only a weighted sum of {', '.join(ADDITIVE)} is rank weights times item values; got {self.name!r}. "
                "Estimate its gradient by sampling: estimator='reinforce'."
            )
        return tuple(forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomReward:
    """A reward of the user's own: any function of (rankings, labels, mask) that gives one value a ranking."""

    name: str
    function: Callable[[Tensor, Tensor, Tensor], Tensor]
    conventions: Conventions = field(default_factory=Conventions)
    cutoff: None = None
    lower_is_better: bool = False
    is_linear: bool = False
    is_additive: bool = False

    def __call__(self, rankings: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        values = torch.as_tensor(self.function(rankings, labels, mask))
        if values.shape != rankings.shape[:-1]:
            raise RankPolicyError(
                f"reward {self.name!r} must give one value a ranking, shape {tuple(rankings.shape[:-1])}; "
                f"got {tuple(values.shape)}. Sum or average over positions: values.sum(-1)."
            )
        return values
