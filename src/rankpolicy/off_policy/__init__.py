"""The value of a ranking policy, estimated from the log of another policy."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.off_policy.estimates import (
        PolicyEstimate as PolicyEstimate,
        estimate_policy_value as estimate_policy_value,
    )
    from rankpolicy.off_policy.log import OffPolicyLog as OffPolicyLog
    from rankpolicy.off_policy.members import OFF_POLICY_ESTIMATORS as OFF_POLICY_ESTIMATORS
    from rankpolicy.off_policy.scanned_log import (
        ScannedOffPolicyLog as ScannedOffPolicyLog,
        scan_off_policy_log as scan_off_policy_log,
    )
    from rankpolicy.off_policy.table_file import (
        read_off_policy_log as read_off_policy_log,
        read_open_bandit as read_open_bandit,
    )
    from rankpolicy.off_policy.targets import TargetProbabilities as TargetProbabilities

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
