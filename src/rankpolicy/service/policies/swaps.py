"""Two positions of a list swapped at random: the smallest change from which position bias can be measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, ClassVar

import numpy as np

from rankpolicy.declarations.settings import check_settings, setting, settings_class
from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Ordered
from rankpolicy.service.policies.policy_settings import made_members
from rankpolicy.service.policies.served_policy import ServedPolicy, ShownLists, Steps
from rankpolicy.types import RankPolicyError


@settings_class
class RandomSwap(ServedPolicy):
    """The caller's own order, or that of another policy, with two positions, drawn for each list, swapped with probability 1/2.

    Both positions then show the same items equally often (Joachims, Swaminathan & Schnabel 2017).
    """

    kind: ClassVar[str] = "swaps"

    depth: int = setting(10, "Positions that may be swapped.", at_least=2, at_most=50)
    pairs: str = setting(
        "adjacent",
        "Which pairs of positions are drawn from: 'adjacent' ones, which change lists least, the 'first' and another one, or 'any' two.",
        choices=("adjacent", "first", "any"),
    )
    of: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = setting(
        None,
        "The policy whose order is swapped, one that does not learn: a table of settings with a kind; None: the caller's own order.",
    )

    def __post_init__(self) -> None:
        check_settings(self)
        self.members = made_members({"kind": "given"} if self.of is None else self.of, number=1)
        self.is_quick = self.members[0].is_quick
        if self.members[0].learns:
            raise RankPolicyError("of must be a policy that does not learn: given, or a ranker.")

    def order(self, request: RankRequest, *, generator: np.random.Generator) -> Ordered:
        """The order with two positions swapped, or not."""
        base = self.members[0].order(request, generator=generator)
        pairs = self._pairs(len(base.items))
        if not pairs:
            return base
        first, second = pairs[int(generator.integers(len(pairs)))]
        is_swapped = generator.random() < 0.5
        shown = _swapped(base.items, first, second) if is_swapped else list(base.items)
        steps: list[float] | None = None
        why: str | None = "swaps: the order behind it is drawn itself"
        if base.propensities is not None and min(base.propensities) == 1:
            steps, why = self._steps(base.items, shown), None
        return Ordered(items=shown, propensities=steps, no_propensities=why, memo={"swap": [first, second]})

    def step_probabilities(self, requests: Sequence[RankRequest], lists: ShownLists) -> Steps | None:
        """The probability of each item of lists given those above it; None where the order behind it is drawn itself."""
        steps = []
        nothing = np.random.default_rng(0)
        for request, shown in zip(requests, lists, strict=True):
            base = self.members[0].order(request, generator=nothing)
            if base.propensities is None or min(base.propensities, default=1.0) < 1:
                return None
            steps.append(self._steps(base.items, shown))
        return steps

    def _pairs(self, size: int) -> list[tuple[int, int]]:
        positions = range(min(self.depth, size))
        if self.pairs == "adjacent":
            return list(pairwise(positions))
        if self.pairs == "first":
            return [(0, other) for other in positions[1:]]
        return list(combinations(positions, 2))

    def _steps(self, base: Sequence[str], shown: Sequence[str]) -> list[float]:
        """P(item | items above): the share of the possible lists that begin so, of those that begin as the items above it."""
        pairs = self._pairs(len(base))
        possible = [(0.5 if pairs else 1.0, list(base))]
        possible += [(0.5 / len(pairs), _swapped(base, *pair)) for pair in pairs]
        steps, above = [], 1.0
        for position, item in enumerate(shown):
            possible = [
                (chance, order) for chance, order in possible if position < len(order) and order[position] == item
            ]
            reached = sum(chance for chance, _ in possible)
            steps.append(min(1.0, reached / above) if above > 0 else 0.0)
            above = reached
        return steps


def _swapped(items: Sequence[str], first: int, second: int) -> list[str]:
    swapped = list(items)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    return swapped
