"""All aims of fairness and all fairness metrics, once: these tables feed the rankers, ``measure_fairness``, the error texts and the
contract tests.

A metric is a function of some of the arrays exposure, merit, labels, groups and mask (query, item), rankings (..., query, position) and
bias (position,), which it takes by name; it returns values (..., query), NaN where it is not defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.fairness.aims import FairnessAim

_HERE = "rankpolicy.fairness"

AIMS: Members[type[FairnessAim]] = Members(
    "fairness", {"group": f"{_HERE}.aims:GroupExposure", "individual": f"{_HERE}.aims:IndividualExposure"}
)

FAIRNESS_METRICS: Members[Callable[..., Tensor]] = Members(
    "fairness metric",
    {
        "awrf": f"{_HERE}.attention:awrf",
        "disparate_treatment": f"{_HERE}.exposure_parity:disparate_treatment",
        "ee_d": f"{_HERE}.expected_exposure:ee_d",
        "ee_l": f"{_HERE}.expected_exposure:ee_l",
        "ee_r": f"{_HERE}.expected_exposure:ee_r",
        "exposure_difference": f"{_HERE}.exposure_parity:exposure_difference",
        "exposure_ratio": f"{_HERE}.exposure_parity:exposure_ratio",
        "max_skew": f"{_HERE}.prefix_shares:max_skew",
        "min_skew": f"{_HERE}.prefix_shares:min_skew",
        "ndkl": f"{_HERE}.prefix_shares:ndkl",
        "rkl": f"{_HERE}.ranked_parity:rkl",
        "rnd": f"{_HERE}.ranked_parity:rnd",
        "treatment_difference": f"{_HERE}.exposure_parity:treatment_difference",
    },
)
