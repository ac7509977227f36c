"""Random lists: what position bias is measured on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankpolicy.service.messages import RankRequest
from rankpolicy.service.policies.served_policy import Ordered, Unlearning
from rankpolicy.settings import documented


@documented
@dataclass(kw_only=True, eq=False)
class UniformLists(Unlearning):
    """Every list of the items is equally likely: 1 / (items not yet placed) at each position."""

    kind: ClassVar[str] = "uniform"

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """A random list.

        Parameters
        ----------
        request
            Query, items and cutoff.
        generator
            Source of randomness.
        """
        num_items = len(request.items)
        places = generator.permutation(num_items)[: request.cutoff].tolist()
        return Ordered(
            items=[request.items[place].id for place in places],
            propensities=[1.0 / (num_items - position) for position in range(len(places))],
        )
