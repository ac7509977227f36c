"""rankpolicy service rollback

Parameters
----------
policy
    The policy.
reason
    Why, for the audit log.

Examples
--------
rankpolicy service rollback --policy search
rankpolicy service rollback --policy search --reason "fewer purchases"
"""

from __future__ import annotations

from rankpolicy.cli.service.database import Db, now_of, opened
from rankpolicy.cli.support import options
from rankpolicy.cli.support.output import answer


def rollback(
    *,
    policy: str = "default",
    reason: str = "",
    db: Db = "rankpolicy.db",
    seed: options.NotRandom = 0,
    as_json: options.Json = False,
) -> None:
    """End the canary of a policy; where there is none, return to the version before. A running service follows after a second."""
    with opened(db, role="keys") as store:
        from rankpolicy.service.learning.promotion import rollback as roll_back

        version = roll_back(store, policy, author="command line", detail=reason, now=now_of(store))
    document = {"policy": policy, "version": version.version, "change": version.number}
    answer(document, f"{policy}: version {version.version} serves everything.", as_json=as_json)
