"""Traffic split between policies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import ClassVar

import numpy as np

from rankpolicy.declarations.settings import check_settings, documented, setting
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Ordered
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.types import RankPolicyError


@documented
@dataclass(kw_only=True, eq=False)
class TrafficSplit(ServedPolicy):
    """Passes each request on to one of several policies; one user, or one list where no user is known, always to the same.

    The list is that of the chosen policy: it is logged and learned under the name of that policy.
    """

    kind: ClassVar[str] = "split"

    shares: Mapping[str, float] = setting(MISSING, "Share of the traffic of each policy by its name; they add up to 1.")

    def __post_init__(self) -> None:
        check_settings(self)
        is_right = isinstance(self.shares, Mapping) and all(
            isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
            for share in self.shares.values()
        )
        if not is_right or not math.isclose(sum(self.shares.values()), 1, abs_tol=1e-9):
            raise RankPolicyError(
                f"shares must be one number from 0 to 1 per policy, and add up to 1; got {self.shares!r:.80}."
            )

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """Never called: the service asks the policy behind it."""
        raise AssertionError("a split orders nothing itself")
