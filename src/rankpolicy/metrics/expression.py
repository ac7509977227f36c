"""Metrics and mixes of metrics as values: the rewards that policies are trained on and measured by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from numpy.typing import NDArray

from rankpolicy.metrics.additive import additive_form
from rankpolicy.metrics.forms import AdditiveForm
from rankpolicy.metrics.members import METRICS
from rankpolicy.types import Conventions, RankPolicyError

if TYPE_CHECKING:
    from torch import Tensor

Array = TypeVar("Array", "Tensor", NDArray[Any])


@dataclass(frozen=True, slots=True)
class Leaf:
    """One metric at one cutoff, with its options: ``rbp(persistence=0.5)@10``.

    Parameters
    ----------
    metric
        Name of the metric, a key of METRICS.
    cutoff
        Number of positions that count; None (the default) counts every position.
    options
        Names and values of the options that were set.
    """

    metric: str
    cutoff: int | None = None
    options: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        return written(self.metric, self.cutoff, self.options)


@dataclass(frozen=True, slots=True)
class Term:
    """A weight times a product of metrics; without factors, a constant.

    Parameters
    ----------
    weight
        The number before the product.
    factors
        The metrics that are multiplied.
    """

    weight: float
    factors: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardExpression:
    """A sum of weighted products of metrics, evaluated as one reward; made by ``parse_metric``.

    Two expressions are equal when they have the same terms and conventions, whatever their names.

    Parameters
    ----------
    name
        The text it was made from, in normalised spelling.
    terms
        What is added up.
    conventions
        The conventions that all its metrics follow.

    >>> import torch
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
        """Values (..., query) of rankings (..., query, position) for labels and mask (query, item)."""
        return self.combine({leaf: self.leaf_values(leaf, rankings, labels, mask) for leaf in self.leaves})

    def combine(self, values: Mapping[Leaf, Array]) -> Array:
        """This reward from the values of its metrics.

        Parameters
        ----------
        values
            Values of each of ``leaves``: tensors or numpy arrays of one shape.
        """
        total = sum(term.weight * math.prod(values[leaf] for leaf in term.factors) for term in self.terms)
        return cast(Array, total)

    def leaf_values(self, leaf: Leaf, rankings: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Values (..., query) of one metric of this expression.

        Parameters
        ----------
        leaf
            One of ``leaves``.
        rankings
            Items in ranked order (..., query, position).
        labels
            Relevance grades (query, item).
        mask
            True where an item is real (query, item).
        """
        return METRICS[leaf.metric](
            rankings, labels, mask, cutoff=leaf.cutoff, conventions=self.conventions, options=dict(leaf.options)
        )

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The metrics it is made of, each once."""
        return tuple(dict.fromkeys(leaf for term in self.terms for leaf in term.factors))

    @property
    def cutoff(self) -> int | None:
        """The deepest position that matters; None when every position does."""
        cutoffs = [leaf.cutoff for leaf in self.leaves]
        return None if None in cutoffs else max(cutoff for cutoff in cutoffs if cutoff is not None)

    @property
    def lower_is_better(self) -> bool:
        """Whether better rankings have lower values, as with avg_rank; not with -avg_rank."""
        return any(
            term.weight > 0 and any(METRICS[leaf.metric].lower_is_better for leaf in term.factors)
            for term in self.terms
        )

    @property
    def is_linear(self) -> bool:
        """Whether it is a weighted sum of metrics: no products of metrics, no constants."""
        return all(len(term.factors) == 1 for term in self.terms)

    @property
    def is_additive(self) -> bool:
        """Whether it is a weighted sum of metrics that all have an additive form."""
        return self.is_linear and all(METRICS[leaf.metric].additive is not None for leaf in self.leaves)

    @property
    def has_cascade(self) -> bool:
        """Whether it is a weighted sum of metrics that all have a cascade form."""
        return self.is_linear and all(METRICS[leaf.metric].has_cascade for leaf in self.leaves)

    def check_labels(self, labels: Tensor | NDArray[Any]) -> None:
        """Refuse labels that one of its metrics cannot read, such as a grade above ``max_label`` for err.

        Parameters
        ----------
        labels
            Labels of any shape.
        """
        checks = [METRICS[leaf.metric].check_labels for leaf in self.leaves]
        if any(checks) and len(labels.reshape(-1)):
            highest = float(labels.max())
            for check in checks:
                if check is not None:
                    check(highest, self.conventions)

    def additive_forms(self, labels: Tensor, mask: Tensor) -> tuple[AdditiveForm, ...]:
        """Rank weights and item values that add up to this reward, one pair per term; item values include the weight of the term.

        Parameters
        ----------
        labels
            Relevance grades (query, item).
        mask
            True where an item is real (query, item).
        """
        if not self.is_additive:
            known = ", ".join(name for name, metric in METRICS.items() if metric.additive is not None)
            raise RankPolicyError(
                f"only a weighted sum of {known} is rank weights times item values; got {self.name!r}. "
                "Estimate its gradient by sampling: estimator='reinforce'."
            )
        forms = []
        for term in self.terms:
            (leaf,) = term.factors
            options = dict(leaf.options)
            form = additive_form(
                leaf.metric, labels, mask, cutoff=leaf.cutoff, conventions=self.conventions, options=options
            )
            assert form is not None
            forms.append(AdditiveForm(form.rank_weights, term.weight * form.item_values))
        return tuple(forms)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomReward:
    """A function of the user's own as a reward; made by ``as_reward``.

    Parameters
    ----------
    name
        Name in tables and error messages.
    function
        ``function(rankings, labels, mask)`` returns one value per ranking (..., query).
    conventions
        The conventions of the table in which it stands; the function need not follow them.
    """

    name: str
    function: Callable[[Tensor, Tensor, Tensor], Tensor]
    conventions: Conventions = field(default_factory=Conventions)

    # Every position may matter, higher is better, and nothing else is known about the function.
    cutoff: ClassVar[None] = None
    lower_is_better: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False
    is_additive: ClassVar[bool] = False
    has_cascade: ClassVar[bool] = False
    leaves: ClassVar[tuple[Leaf, ...]] = ()

    def __call__(self, rankings: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        """Values (..., query) of rankings (..., query, position) for labels and mask (query, item)."""
        import torch

        values = torch.as_tensor(self.function(rankings, labels, mask))
        if values.shape != rankings.shape[:-1]:
            raise RankPolicyError(
                f"reward {self.name!r} must give one value per ranking, shape {tuple(rankings.shape[:-1])}; "
                f"got {tuple(values.shape)}. Sum or average over positions: values.sum(-1)."
            )
        return values

    def check_labels(self, labels: Tensor | NDArray[Any]) -> None:
        """Accept all labels: the function decides what it reads.

        Parameters
        ----------
        labels
            Labels of any shape.
        """

    def additive_forms(self, labels: Tensor, mask: Tensor) -> tuple[AdditiveForm, ...]:
        """Raise an error: a function is not known to be rank weights times item values.

        Parameters
        ----------
        labels
            Relevance grades (query, item).
        mask
            True where an item is real (query, item).
        """
        raise RankPolicyError(
            f"only a reward of rank weights times item values has an exact gradient; {self.name!r} is a function. "
            "Estimate its gradient by sampling: estimator='reinforce'."
        )


def written(name: str, cutoff: int | None, options: tuple[tuple[str, float], ...]) -> str:
    """A metric with its options and cutoff as an expression writes it.

    >>> written("rbp", 10, (("persistence", 0.5),))
    'rbp(persistence=0.5)@10'
    """
    given = ", ".join(f"{option}={written_number(value)}" for option, value in options)
    return name + (f"({given})" if given else "") + (f"@{cutoff}" if cutoff else "")


def written_number(value: float) -> str:
    """The shortest text that reads back as the same number, "2" rather than "2.0".

    >>> written_number(2.0), written_number(0.1234567)
    ('2', '0.1234567')
    """
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
