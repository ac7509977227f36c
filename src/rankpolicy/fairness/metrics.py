"""One call that measures several fairness metrics."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from torch import Tensor

from rankpolicy.fairness.members import FAIRNESS_METRICS
from rankpolicy.types import RankPolicyError


def measure_fairness(
    metrics: Sequence[str],
    *,
    mask: Tensor,
    exposure: Tensor | None = None,
    rankings: Tensor | None = None,
    labels: Tensor | None = None,
    merit: Tensor | None = None,
    groups: Tensor | None = None,
    bias: Tensor | None = None,
) -> dict[str, Tensor]:
    """Values (..., query) of each metric; NaN marks a query for which it is not defined.

    Parameters
    ----------
    metrics
        Names from ``FAIRNESS_METRICS``.
    mask
        True at real items (query, item).
    exposure
        Expected position bias of each item (query, item), for metrics of stochastic policies.
    rankings
        (..., query, position), for metrics of single rankings.
    labels
        Grades (query, item), for ee_l and ee_r.
    merit
        Merit of items (query, item), for disparate_treatment.
    groups
        Group codes (query, item), for metrics that compare groups.
    bias
        Position bias (position,) of the exposure, for ee_l and ee_r.

    >>> import torch
    >>> mask, groups = torch.ones(1, 2, dtype=torch.bool), torch.tensor([[0, 1]])
    >>> measure_fairness(["exposure_ratio", "ee_d"], mask=mask, groups=groups, exposure=torch.tensor([[1.0, 0.5]]))
    {'exposure_ratio': tensor([0.5000]), 'ee_d': tensor([1.2500])}
    """
    arrays = {
        "exposure": exposure,
        "rankings": rankings,
        "labels": labels,
        "merit": merit,
        "groups": groups,
        "bias": bias,
    }
    given = {"mask": mask} | {name: array for name, array in arrays.items() if array is not None}
    return {name: _measure(name, given) for name in metrics}


def _measure(name: str, given: dict[str, Tensor]) -> Tensor:
    metric = FAIRNESS_METRICS.named(name)
    parameters = inspect.signature(metric).parameters.values()
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    missing = [array for array in needed if array not in given]
    if missing:
        raise RankPolicyError(
            f"{name} needs {', '.join(needed)}; got {', '.join(given)}. Pass {', '.join(missing)} too."
        )
    return metric(**{array: given[array] for array in needed})
