"""Random lists: what position bias is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankpolicy.declarations.settings import documented
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Ordered
from rankpolicy.service.policies.served_policy import ServedPolicy


@documented
@dataclass(kw_only=True, eq=False)
class UniformLists(ServedPolicy):
    """Every list of the items is equally likely: 1 / (items not yet placed) at each position."""

    kind: ClassVar[str] = "uniform"

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """A random list."""
        num_items = len(request.items)
        indices = generator.permutation(num_items)[: request.cutoff].tolist()
        return Ordered(
            items=[request.items[index].id for index in indices],
            propensities=[1.0 / (num_items - position) for position in range(len(indices))],
        )

    def step_probabilities(
        self, requests: Sequence[RankRequest], lists: Sequence[Sequence[str]]
    ) -> list[list[float]] | None:
        """1 / (items not yet placed), for every list."""
        return [
            [1.0 / (len(request.items) - position) for position in range(len(shown))]
            for request, shown in zip(requests, lists, strict=True)
        ]
