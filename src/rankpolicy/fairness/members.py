"""All aims of fairness and all fairness metrics, once: these tables feed the rankers, ``measure_fairness``, the error texts and the
contract tests.

A metric is a function of some of the arrays exposure, merit, labels, groups and mask (query, item), rankings (..., query, position) and
bias (position,), which it takes by name; it returns values (..., query), NaN where it is not defined.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.arrays import Array
    from rankpolicy.fairness.aims import FairnessAim

_HERE = "rankpolicy.fairness"

AIMS: Members[type[FairnessAim]] = Members(
    "fairness", {"group": f"{_HERE}.aims:GroupExposure", "individual": f"{_HERE}.aims:IndividualExposure"}
)

FAIRNESS_METRICS: Members[Callable[..., Array]] = Members(
    "fairness metric",
    {
        "awrf": f"{_HERE}.exposure_parity:awrf",
        "disparate_treatment": f"{_HERE}.exposure_parity:disparate_treatment",
        "ee_d": f"{_HERE}.exposure_parity:ee_d",
        "ee_l": f"{_HERE}.exposure_parity:ee_l",
        "ee_r": f"{_HERE}.exposure_parity:ee_r",
        "exposure_difference": f"{_HERE}.exposure_parity:exposure_difference",
        "exposure_ratio": f"{_HERE}.exposure_parity:exposure_ratio",
        "max_skew": f"{_HERE}.prefix_shares:max_skew",
        "min_skew": f"{_HERE}.prefix_shares:min_skew",
        "ndkl": f"{_HERE}.prefix_shares:ndkl",
        "rkl": f"{_HERE}.prefix_shares:rkl",
        "rnd": f"{_HERE}.prefix_shares:rnd",
        "treatment_difference": f"{_HERE}.exposure_parity:treatment_difference",
    },
)


def measure_fairness(
    metrics: Sequence[str],
    *,
    mask: Array,
    exposure: Array | None = None,
    rankings: Array | None = None,
    labels: Array | None = None,
    merit: Array | None = None,
    groups: Array | None = None,
    bias: Array | None = None,
) -> dict[str, Array]:
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

    >>> import numpy as np
    >>> mask, groups = np.ones((1, 2), bool), np.array([[0, 1]])
    >>> measure_fairness(["exposure_ratio", "ee_d"], mask=mask, groups=groups, exposure=np.array([[1.0, 0.5]]))
    {'exposure_ratio': array([0.5]), 'ee_d': array([1.25])}
    """
    names = ("mask", "exposure", "rankings", "labels", "merit", "groups", "bias")
    values = (mask, exposure, rankings, labels, merit, groups, bias)
    arrays = {name: array for name, array in zip(names, values, strict=True) if array is not None}
    return {name: _measure(name, arrays) for name in metrics}


def _measure(name: str, arrays: dict[str, Array]) -> Array:
    metric = FAIRNESS_METRICS.named(name)
    parameters = inspect.signature(metric).parameters.values()
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    missing = [array for array in needed if array not in arrays]
    if missing:
        raise RankPolicyError(
            f"{name} needs {', '.join(needed)}; got {', '.join(arrays)}. Pass {', '.join(missing)} too."
        )
    return metric(**{array: arrays[array] for array in needed})
