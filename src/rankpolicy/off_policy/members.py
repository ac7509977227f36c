"""All off-policy estimators, once: this table feeds the error texts and the contract tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankpolicy.off_policy.estimators import EstimatorTerms, OffPolicyQuery

_PLACE = "rankpolicy.off_policy.estimators"

OFF_POLICY_ESTIMATORS: Members[Callable[[OffPolicyQuery], EstimatorTerms]] = Members(
    "off-policy estimator",
    {
        "ips": f"{_PLACE}:ips",
        "snips": f"{_PLACE}:snips",
        "iips": f"{_PLACE}:iips",
        "sniips": f"{_PLACE}:sniips",
        "rips": f"{_PLACE}:rips",
        "snrips": f"{_PLACE}:snrips",
        "cascade-dr": f"{_PLACE}:cascade_dr",
        "direct": f"{_PLACE}:direct",
    },
)
