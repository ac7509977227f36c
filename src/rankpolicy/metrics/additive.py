"""The additive form of a metric by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rankpolicy.metrics.forms import AdditiveForm
from rankpolicy.metrics.members import metric_named
from rankpolicy.metrics.ranked import judged_items
from rankpolicy.types import Conventions

if TYPE_CHECKING:
    from torch import Tensor


def additive_form(
    metric: str,
    labels: Tensor,
    mask: Tensor,
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

    >>> import torch
    >>> form = additive_form("ndcg", torch.tensor([[0.0, 1.0, 3.0]]), torch.ones(1, 3, dtype=torch.bool), cutoff=2)
    >>> form.rank_weights, form.item_values  # values 1/7.63 and 7/7.63
    (tensor([1.0000, 0.6309, 0.0000]), tensor([[0.0000, 0.1310, 0.9173]]))
    """
    additive = metric_named(metric).additive
    if additive is None:
        return None
    return additive(
        judged_items(labels, mask, cutoff=cutoff), cutoff=cutoff, conventions=conventions, **(options or {})
    )
