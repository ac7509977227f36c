"""The caller's own order: the reference point of every change, and what the service falls back to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankpolicy.declarations.settings import documented
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Ordered
from rankpolicy.service.policies.served_policy import ServedPolicy, steps_of_order


@documented
@dataclass(kw_only=True, eq=False)
class GivenOrder(ServedPolicy):
    """Items in the order in which the request has them; the probability of that list is 1."""

    kind: ClassVar[str] = "given"

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The first items of the request."""
        names = [item.id for item in request.items[: request.cutoff]]
        return Ordered(items=names, propensities=[1.0] * len(names))

    def step_probabilities(
        self, requests: Sequence[RankRequest], lists: Sequence[Sequence[str]]
    ) -> list[list[float]] | None:
        """1 as long as a list follows the order of the request, then 0."""
        return [
            steps_of_order([item.id for item in request.items], shown)
            for request, shown in zip(requests, lists, strict=True)
        ]
