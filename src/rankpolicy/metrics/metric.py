"""What a metric is: one value with its function and what others need to know of it, and the two forms that gradients follow from."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

from rankpolicy.arrays import Array, namespace
from rankpolicy.declarations.settings import Declaration
from rankpolicy.metrics.ranked import JudgedItems, ranked
from rankpolicy.types import Conventions, RankPolicyError, unknown_name

# function(rankings, labels, mask, *, cutoff=None, conventions=Conventions(), **options) -> values (..., query)
MetricFunction = Callable[..., Array]

_PARAMETERS = """
Parameters
----------
rankings
    Items in ranked order (..., query, position): ``rankings[..., p]`` is the item at position p. Prefixes of rankings are allowed.
labels
    Relevance grades (query, item), 0 and up.
mask
    True where an item is real, False where it is padding (query, item); ``all_items`` makes one without padding.
cutoff
    Number of positions that count; None (the default) counts every position.
conventions
    Gain, value of queries without relevant items, threshold of relevance and highest grade; see ``Conventions``.
"""


class AdditiveForm(NamedTuple):
    """A metric as rank weights times item values, the form that exact gradients need.

    metric(ranking r) = Σ_k rank_weights[k] item_values[r(k)] for full rankings. Queries without relevant items have item values of 0:
    their metric is a constant, which no gradient sees.

    Parameters
    ----------
    rank_weights
        Weight θ_k of each rank (position,), 0 past the cutoff.
    item_values
        Value ρ_i of each item (query, item), 0 at padded items.
    """

    rank_weights: Array
    item_values: Array


class CascadeForm(NamedTuple):
    """A metric as rank weights times item values times a factor that depends on the items above, the form of the gumbel estimator.

        metric(ranking r) = constant + Σ_k θ_k ρ_{r(k)} c_k,    c_1 = 1,    c_{k+1} = κ_{r(k)} c_k + α_{r(k)}

    It requires that exchanging the items i and j at ranks k and k + 1 changes the metric by (θ_k - θ_{k+1}) c_k (ρ_i - ρ_j).

    Parameters
    ----------
    rank_weights
        θ of each rank (position,), 0 past the cutoff.
    item_values
        ρ of each item (query, item), 0 at padded items and in queries without relevant items.
    keep
        κ of each item (query, item).
    add
        α of each item (query, item).
    constant
        The part that does not depend on the ranking (query,).
    """

    rank_weights: Array
    item_values: Array
    keep: Array
    add: Array
    constant: Array


def cascade_of_additive(form: AdditiveForm) -> CascadeForm:
    """The cascade form of an additive metric: its factor is 1 at every rank.

    The weight of the last rank goes into the constant, since every item has it whatever the order: the ranks at which a swap matters then
    end where the weights become equal, for avg_rank@10 after ten ranks.
    """
    last, values = form.rank_weights[-1], form.item_values
    xp = namespace(values)
    return CascadeForm(
        rank_weights=form.rank_weights - last,
        item_values=values,
        keep=xp.ones_like(values),
        add=xp.zeros_like(values),
        constant=last * values.sum(-1),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Metric:
    """A metric of rankings, declared once, at the end of its file; parser, estimators, evaluation and kernels read this value.

    Parameters
    ----------
    name
        Name in reward expressions and tables, such as ``"ndcg"``.
    function
        ``function(rankings, labels, mask, *, cutoff=None, conventions=Conventions(), **options)`` returns values (..., query).
    reads
        What the metric reads from labels. "gains": any number from 0 upwards, including relevances estimated from clicks. "grades": grades
        up to ``conventions.max_label``. "relevance": whether an item is relevant, its label at least ``conventions.relevant_from``.
    aliases
        Other names by which expressions may call it, such as ``"map"`` for ``"ap"``.
    lower_is_better
        True where better rankings have lower values.
    options
        Options that an expression may set, as in ``rbp(persistence=0.5)``: help and range by name. Defaults are those of the function.
    additive
        ``additive(items, *, cutoff, conventions, **options)`` returns the ``AdditiveForm``; None for metrics that have none.
    cascade
        ``cascade(items, *, cutoff, conventions, **options)`` returns the ``CascadeForm``; None for metrics that have none. Additive metrics
        need not declare it: their cascade form follows from the additive one.
    kernel_code
        The metric's code in ``kernels/codes.py``; None where no compiled kernel computes it.
    check_labels
        ``check_labels(highest, conventions)`` raises an error for a highest label that the metric cannot read; None accepts all.
    """

    name: str
    function: MetricFunction
    reads: Literal["gains", "grades", "relevance"]
    aliases: tuple[str, ...] = ()
    lower_is_better: bool = False
    options: Mapping[str, Declaration] = field(default_factory=dict)
    additive: Callable[..., AdditiveForm] | None = None
    cascade: Callable[..., CascadeForm] | None = None
    kernel_code: int | None = None
    check_labels: Callable[[float, Conventions], None] | None = None

    @property
    def has_cascade(self) -> bool:
        """Whether the metric has a cascade form, declared or following from its additive form."""
        return self.additive is not None or self.cascade is not None

    def cascade_form(
        self, items: JudgedItems, *, cutoff: int | None, conventions: Conventions, options: Mapping[str, float]
    ) -> CascadeForm:
        """The cascade form, declared or following from the additive form; only where ``has_cascade``.

        Parameters
        ----------
        items
            The items of each query and their labels, from ``judged_items``.
        cutoff
            Number of positions that count; None counts every position.
        conventions
            The conventions of the metric.
        options
            Options of the metric that were set.
        """
        if self.cascade is not None:
            return self.cascade(items, cutoff=cutoff, conventions=conventions, **options)
        assert self.additive is not None, f"{self.name} has no cascade form"
        return cascade_of_additive(self.additive(items, cutoff=cutoff, conventions=conventions, **options))

    def check_option(self, name: str, value: float) -> None:
        """Refuse an option that the metric does not have, or a value out of its range.

        Parameters
        ----------
        name
            Name of the option.
        value
            Its value.
        """
        if name not in self.options:
            raise RankPolicyError(unknown_name(f"option of {self.name}:", name, self.options))
        check_range(name, value, self.options[name])

    def __call__(
        self,
        rankings: Array,
        labels: Array,
        mask: Array,
        *,
        cutoff: int | None = None,
        conventions: Conventions = Conventions(),
        options: Mapping[str, float] | None = None,
    ) -> Array:
        """Values (..., query) of rankings (..., query, position) for labels and mask (query, item)."""
        return self.function(rankings, labels, mask, cutoff=cutoff, conventions=conventions, **(options or {}))


@cache
def metric_aliases() -> dict[str, str]:
    """Other names of metrics, each with the name it stands for: ``{"map": "ap", ...}``."""
    from rankpolicy.metrics.members import METRICS

    return {alias: name for name, metric in METRICS.items() for alias in metric.aliases}


def metric_named(name: str) -> Metric:
    """The metric of a name or alias.

    Parameters
    ----------
    name
        A name such as ``"ndcg"``, or an alias such as ``"map"``.

    >>> metric_named("map").name
    'ap'
    >>> metric_named("ndgc")
    Traceback (most recent call last):
    rankpolicy.types.RankPolicyError: Unknown metric 'ndgc'. Did you mean 'ndcg'? Known: ...
    """
    from rankpolicy.metrics.members import METRICS

    full_name = name if name in METRICS else metric_aliases().get(str(name))
    if full_name is None:
        raise RankPolicyError(unknown_name("metric", name, METRICS, also=[*metric_aliases(), "mean"]))
    return METRICS[full_name]


def check_range(name: str, value: float, declared: Declaration) -> None:
    """Refuse a value of an option that lies outside of its declared range."""
    if not declared.allows(value):
        raise RankPolicyError(f"{name} must be {declared.range_in_words()}; got {value:g}. {declared.help}")


def metric_function(**options: Declaration) -> Callable[[Callable[..., Array]], MetricFunction]:
    """Decorator that makes a public metric of a function of judged lists; all metrics share their arguments and what is said of them.

    Parameters
    ----------
    options
        Declarations of the metric's own options by name.
    """

    def decorate(values_of: Callable[..., Array]) -> MetricFunction:
        def metric(
            rankings: Array,
            labels: Array,
            mask: Array,
            *,
            cutoff: int | None = None,
            conventions: Conventions = Conventions(),
            **own_options: float,
        ) -> Array:
            lists = ranked(rankings, labels, mask, cutoff=cutoff)
            return values_of(lists, cutoff=cutoff, conventions=conventions, **own_options)

        option_parameters = [inspect.signature(values_of).parameters[name] for name in options]
        *shared, _ = inspect.signature(metric).parameters.values()
        texts = "".join(
            f"{parameter.name}\n    {options[parameter.name].help} The default is {parameter.default:g}.\n"
            for parameter in option_parameters
        )
        functools.update_wrapper(metric, values_of)
        del metric.__wrapped__  # type: ignore[attr-defined]  # its arguments are others
        metric.__signature__ = inspect.Signature([*shared, *option_parameters], return_annotation="Array")  # type: ignore[attr-defined]
        metric.__doc__ = inspect.cleandoc(values_of.__doc__ or "") + "\n" + _PARAMETERS + texts
        return metric

    return decorate
