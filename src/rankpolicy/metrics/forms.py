"""Two forms that a metric may have besides its function; estimators read gradients from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


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

    rank_weights: Tensor
    item_values: Tensor


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

    rank_weights: Tensor
    item_values: Tensor
    keep: Tensor
    add: Tensor
    constant: Tensor


def cascade_of_additive(form: AdditiveForm) -> CascadeForm:
    """The cascade form of an additive metric: its factor is 1 at every rank.

    The weight of the last rank goes into the constant, since every item has it whatever the order: the ranks at which a swap matters then
    end where the weights become equal, for avg_rank@10 after ten ranks.
    """
    last, values = form.rank_weights[-1], form.item_values
    return CascadeForm(
        rank_weights=form.rank_weights - last,
        item_values=values,
        keep=values.new_ones(values.shape),
        add=values.new_zeros(values.shape),
        constant=last * values.sum(-1),
    )
