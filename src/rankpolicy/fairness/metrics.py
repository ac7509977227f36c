"""The fairness metrics, listed once, and one call that measures several of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from torch import Tensor

from rankpolicy.fairness.attention import awrf
from rankpolicy.fairness.expected_exposure import ee_d, ee_l, ee_r
from rankpolicy.fairness.exposure_parity import disparate_treatment, exposure_difference, exposure_ratio
from rankpolicy.fairness.prefix_shares import max_skew, min_skew, ndkl
from rankpolicy.fairness.ranked_parity import rkl, rnd
from rankpolicy.types import RankPolicyError, unknown_name

# Arrays go by name: exposure, merit, labels, groups, mask (query, item), rankings (..., query, position), bias (position,).
FAIRNESS_METRICS: dict[str, Callable[..., Tensor]] = {
    "awrf": awrf,
    "disparate_treatment": disparate_treatment,
    "ee_d": ee_d,
    "ee_l": ee_l,
    "ee_r": ee_r,
    "exposure_difference": exposure_difference,
    "exposure_ratio": exposure_ratio,
    "max_skew": max_skew,
    "min_skew": min_skew,
    "ndkl": ndkl,
    "rkl": rkl,
    "rnd": rnd,
}


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
    """Values (..., query) of each metric, from those of the arrays it needs; NaN marks a query that a metric says nothing of.

    Metrics of stochastic policies look at ``exposure``, those of single rankings at ``rankings``.

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
    if name not in FAIRNESS_METRICS:
        raise RankPolicyError(unknown_name("fairness metric", name, FAIRNESS_METRICS))
    parameters = inspect.signature(FAIRNESS_METRICS[name]).parameters.values()
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    missing = [array for array in needed if array not in given]
    if missing:
        raise RankPolicyError(
            f"{name} needs {', '.join(needed)}; got {', '.join(given)}. Pass {', '.join(missing)} too."
        )
    return FAIRNESS_METRICS[name](**{array: given[array] for array in needed})
