"""All estimators, once: these tables feed the settings of rankers, the error texts and the contract tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankpolicy.declarations.members import Members

if TYPE_CHECKING:
    from rankpolicy.gradients.estimate import Estimator

ESTIMATORS: Members[Estimator] = Members(
    "estimator",
    {
        "auto": "rankpolicy.gradients.auto:auto",
        "exact": "rankpolicy.gradients.exact:exact",
        "gumbel": "rankpolicy.gradients.gumbel:gumbel",
        "pl_rank": "rankpolicy.gradients.pl_rank:pl_rank",
        "reinforce": "rankpolicy.gradients.reinforce:reinforce",
    },
)

AFFINITY_ESTIMATORS: Members[Estimator] = Members(
    "estimator of the affinity policy", {"reinforce": "rankpolicy.gradients.affinity_reinforce:affinity_reinforce"}
)
