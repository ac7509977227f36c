"""Policies without state: the caller's own order, random lists, and the split of traffic between others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import ClassVar

import numpy as np

from rankpolicy.declarations.settings import check_settings, setting, settings_class
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Ordered
from rankpolicy.service.policies.served_policy import ServedPolicy, ShownLists, Steps, steps_of_order
from rankpolicy.types import RankPolicyError


@settings_class
class GivenOrder(ServedPolicy):
    """Items in the order in which the request has them; the probability of that list is 1."""

    kind: ClassVar[str] = "given"

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The first items of the request."""
        names = [item.id for item in request.items[: request.cutoff]]
        return Ordered(items=names, propensities=[1.0] * len(names))

    def step_probabilities(self, requests: Sequence[RankRequest], lists: ShownLists) -> Steps | None:
        """1 as long as a list follows the order of the request, then 0."""
        return [
            steps_of_order([item.id for item in request.items], shown)
            for request, shown in zip(requests, lists, strict=True)
        ]


@settings_class
class UniformLists(ServedPolicy):
    """Every list of the items is equally likely: 1 / (items not yet placed) at each position."""

    kind: ClassVar[str] = "uniform"

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """A random list."""
        indices = generator.permutation(len(request.items))[: request.cutoff].tolist()
        shown = [request.items[index].id for index in indices]
        return Ordered(items=shown, propensities=_uniform_steps(request, shown))

    def step_probabilities(self, requests: Sequence[RankRequest], lists: ShownLists) -> Steps | None:
        """1 / (items not yet placed), for every list."""
        return [_uniform_steps(request, shown) for request, shown in zip(requests, lists, strict=True)]


@settings_class
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


def _uniform_steps(request: RankRequest, shown: Sequence[str]) -> list[float]:
    return [1.0 / (len(request.items) - position) for position in range(len(shown))]
