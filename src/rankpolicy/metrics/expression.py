"""Metrics and mixes of metrics as values: the rewards that policies are trained on and measured by.

Beside them stands what others read from a reward: its additive form, the labels it can read, and the arrays that kernels take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import Array, on_host
from rankpolicy.data.click_evidence import LabelKind
from rankpolicy.kernels import HAS_NUMBA, can_read
from rankpolicy.kernels.codes import NO_CUTOFF
from rankpolicy.metrics.members import METRICS
from rankpolicy.metrics.metric import AdditiveForm, Metric, metric_named
from rankpolicy.metrics.ranked import judged_items
from rankpolicy.types import Conventions, RankPolicyError, Reward

LEAST_RELEVANCE = 1e-9  # the lowest relevance estimated from clicks that counts as relevant


@dataclass(frozen=True)
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

    @cached_property
    def definition(self) -> Metric:
        """The metric of this name."""
        return METRICS[self.metric]


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


@dataclass(frozen=True, kw_only=True)
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
    trained
        Whether BanditRank trains the weights of the terms.

    >>> from rankpolicy.metrics import all_items, parse_metric
    >>> reward = parse_metric("mean(map, rr)")
    >>> reward(np.array([[1, 0]]), np.array([[1.0, 0.0]]), all_items(1, 2))
    array([0.5])
    >>> reward == parse_metric("0.5*rr + 0.5*ap")
    True
    """

    name: str = field(compare=False)
    terms: tuple[Term, ...]
    conventions: Conventions = field(default_factory=Conventions)
    trained: bool = False

    def __call__(self, rankings: Array, labels: Array, mask: Array) -> Array:
        """Values (..., query) of rankings (..., query, position) for labels and mask (query, item)."""
        return self.combine({leaf: self.leaf_values(leaf, rankings, labels, mask) for leaf in self.leaves})

    def combine(self, values: Mapping[Leaf, Array]) -> Array:
        """This reward from the values of its metrics.

        Parameters
        ----------
        values
            Values of each of ``leaves``: tensors or numpy arrays of one shape.
        """
        total: Any = 0
        for term in self.terms:
            total = total + term.weight * math.prod(map(values.__getitem__, term.factors))
        return cast(Array, total)

    def leaf_values(self, leaf: Leaf, rankings: Array, labels: Array, mask: Array) -> Array:
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
        return leaf.definition(
            rankings, labels, mask, cutoff=leaf.cutoff, conventions=self.conventions, options=dict(leaf.options)
        )

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The metrics it is made of, each once."""
        return tuple(dict.fromkeys(leaf for term in self.terms for leaf in term.factors))

    @cached_property
    def cutoff(self) -> int | None:
        """The deepest position that matters; None when every position does."""
        cutoffs = [leaf.cutoff for leaf in self.leaves]
        return None if None in cutoffs else max(cast(list[int], cutoffs))

    @cached_property
    def lower_is_better(self) -> bool:
        """Whether better rankings have lower values, as with avg_rank; not with -avg_rank."""
        return any(leaf.definition.lower_is_better for term in self.terms if term.weight > 0 for leaf in term.factors)

    @cached_property
    def is_linear(self) -> bool:
        """Whether it is a weighted sum of metrics: no products of metrics, no constants."""
        return all(len(term.factors) == 1 for term in self.terms)

    @cached_property
    def is_additive(self) -> bool:
        """Whether it is a weighted sum of metrics that all have an additive form."""
        return self.is_linear and all(leaf.definition.additive is not None for leaf in self.leaves)

    @cached_property
    def has_cascade(self) -> bool:
        """Whether it is a weighted sum of metrics that all have a cascade form."""
        return self.is_linear and all(leaf.definition.has_cascade for leaf in self.leaves)

    @cached_property
    def has_exact_expectation(self) -> bool:
        """Whether its expectation over ties follows from those of its metrics: a weighted sum of cascade forms and constants."""
        return all(len(term.factors) <= 1 for term in self.terms) and all(
            leaf.definition.has_cascade for leaf in self.leaves
        )

    def check_labels(self, labels: Array) -> None:
        """Refuse labels that one of its metrics cannot read, such as a grade above ``max_label`` for err.

        Parameters
        ----------
        labels
            Labels of any shape.
        """
        if self._label_checks and len(labels.reshape(-1)) and (on_host(labels) or can_read(labels)):
            highest = float(labels.max())
            for check in self._label_checks:
                check(highest, self.conventions)

    @cached_property
    def _label_checks(self) -> list[Callable[[float, Conventions], None]]:
        checks = [leaf.definition.check_labels for leaf in self.leaves]
        return [check for check in checks if check is not None]

    def additive_forms(self, labels: Array, mask: Array) -> tuple[AdditiveForm, ...]:
        """Rank weights and item values that add up to this reward, one pair per term; item values include the weight of the term.

        Parameters
        ----------
        labels
            Relevance grades (query, item).
        mask
            True where an item is real (query, item).
        """
        if not self.is_additive:
            additive_metrics = ", ".join(name for name, metric in METRICS.items() if metric.additive is not None)
            raise RankPolicyError(
                f"only a weighted sum of {additive_metrics} is rank weights times item values; got {self.name!r}.",
                python="Estimate its gradient by sampling: estimator='reinforce'.",
                command_line="Estimate its gradient by sampling: --set estimator=reinforce.",
            )
        forms = []
        for term in self.terms:
            (leaf,) = term.factors
            additive = leaf.definition.additive
            assert additive is not None
            items = judged_items(labels, mask, cutoff=leaf.cutoff)
            form = additive(items, cutoff=leaf.cutoff, conventions=self.conventions, **dict(leaf.options))
            forms.append(AdditiveForm(form.rank_weights, term.weight * form.item_values))
        return tuple(forms)


def additive_form(
    metric: str,
    labels: Array,
    mask: Array,
    *,
    cutoff: int | None = None,
    conventions: Conventions = Conventions(),
    options: Mapping[str, float] | None = None,
) -> AdditiveForm | None:
    """Rank weights θ and item values ρ with metric = Σ_k θ_k ρ_{r(k)} for full rankings r; None for metrics that have no such form.

    Parameters
    ----------
    metric
        Name of a metric, such as ``"ndcg"``.
    labels
        Relevance grades (query, item).
    mask
        True where an item is real, False where it is padding (query, item).
    cutoff
        Number of positions that count; None (the default) counts every position.
    conventions
        Gain, threshold of relevance and the other conventions of the metric.
    options
        Options of the metric, such as ``{"persistence": 0.5}`` for rbp; None for its defaults.

    >>> form = additive_form("ndcg", np.array([[0.0, 1.0, 3.0]]), np.ones((1, 3), bool), cutoff=2)
    >>> form.rank_weights.round(4), form.item_values.round(4)  # values 1/7.63 and 7/7.63
    (array([1.    , 0.6309, 0.    ]), array([[0.    , 0.131 , 0.9173]]))
    """
    additive = metric_named(metric).additive
    if additive is None:
        return None
    return additive(
        judged_items(labels, mask, cutoff=cutoff), cutoff=cutoff, conventions=conventions, **(options or {})
    )


def binary_metrics(reward: Reward) -> list[str]:
    """The metrics of a reward that ask which items are relevant, instead of reading labels as gains."""
    if not isinstance(reward, RewardExpression):
        return []
    return [str(leaf) for leaf in reward.leaves if leaf.definition.reads != "gains"]


def reward_for_labels(reward: Reward, label_kind: LabelKind) -> Reward:
    """The reward as labels of this kind allow it: gains are linear in estimated relevances, which may be any number from 0.

    A metric that asks which items are relevant is refused for them: an estimated relevance does not say.
    """
    if label_kind != "relevances" or not isinstance(reward, RewardExpression):
        return reward
    binary = binary_metrics(reward)
    if binary:
        graded = " or ".join(name for name, metric in METRICS.items() if metric.reads == "gains")
        raise RankPolicyError(
            f"{binary[0]} asks which items are relevant, which relevances estimated from clicks do not say. Make the dataset from whole "
            f"sessions, by='query', or take {graded}."
        )
    return replace(reward, conventions=replace(reward.conventions, gain="linear", relevant_from=LEAST_RELEVANCE))


class TermTable(NamedTuple):
    """Code, cutoff and weight of each metric of a weighted sum.

    Parameters
    ----------
    kinds
        Codes of the metrics (term,), from ``kernels/codes.py``.
    cutoffs
        Cutoffs (term,); ``codes.NO_CUTOFF`` where every position counts.
    weights
        Weights (term,).
    """

    kinds: NDArray[np.int64]
    cutoffs: NDArray[np.int64]
    weights: NDArray[np.float64]


def term_table(reward: Reward) -> TermTable | None:
    """The table of a weighted sum of metrics that kernels know; None for other rewards, and where numba is not installed.

    Parameters
    ----------
    reward
        Any reward. Products of metrics, constants, metrics without a kernel and functions of the user's own give None.

    >>> from rankpolicy.metrics import parse_metric
    >>> term_table(parse_metric("0.7*ndcg@10 + 0.3*p@5")).cutoffs.tolist()
    [10, 5]
    >>> term_table(parse_metric("ndcg * ap")) is None
    True
    """
    if not isinstance(reward, RewardExpression) or not reward.is_linear:
        return None
    table = leaf_table([term.factors[0] for term in reward.terms])
    if table is None:
        return None
    return TermTable(*table, np.array([term.weight for term in reward.terms]))


def leaf_table(leaves: Sequence[Leaf]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Codes and cutoffs of these metrics; None when no kernel computes one of them."""
    if not HAS_NUMBA:
        return None
    codes = [None if leaf.options else leaf.definition.kernel_code for leaf in leaves]
    if None in codes:
        return None
    return np.array(codes, np.int64), np.array([leaf.cutoff or NO_CUTOFF for leaf in leaves], np.int64)


def written(name: str, cutoff: int | None, options: tuple[tuple[str, float], ...]) -> str:
    """A metric with its options and cutoff as an expression writes it.

    >>> written("rbp", 10, (("persistence", 0.5),))
    'rbp(persistence=0.5)@10'
    """
    settings = ", ".join(f"{option}={written_number(value)}" for option, value in options)
    return name + (f"({settings})" if settings else "") + (f"@{cutoff}" if cutoff else "")


def written_number(value: float) -> str:
    """The shortest text that reads back as the same number, "2" rather than "2.0".

    >>> written_number(2.0), written_number(0.1234567)
    ('2', '0.1234567')
    """
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
