"""The value of a ranking policy estimated from a log of another one."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.off_policy.estimates import OFF_POLICY_ESTIMATORS, PolicyEstimate, estimate_policy_value
    from rankpolicy.off_policy.log import OffPolicyLog
    from rankpolicy.off_policy.open_bandit import read_open_bandit
    from rankpolicy.off_policy.targets import TargetProbabilities

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "OFF_POLICY_ESTIMATORS",
    "OffPolicyLog",
    "PolicyEstimate",
    "TargetProbabilities",
    "estimate_policy_value",
    "read_open_bandit",
]
