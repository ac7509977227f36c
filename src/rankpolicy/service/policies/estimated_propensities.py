"""Propensities of policies without a closed form, estimated by drawing more lists."""

from __future__ import annotations

import msgspec
import numpy as np

from rankpolicy.service.domain.messages import RankRequest
from rankpolicy.service.domain.records import Ordered
from rankpolicy.service.policies.served_policy import ServedPolicy


def with_estimated_propensities(
    policy: ServedPolicy, request: RankRequest, ordered: Ordered, *, num_draws: int, generator: np.random.Generator
) -> Ordered:
    """The list with estimated propensities: (m_p + 1) / (m_{p-1} + 1), where m_p of the drawn lists begin with its first p items.

    The list itself counts as a draw, so that no propensity is 0. The estimate for the whole list is (m + 1) / (draws + 1): with few draws
    or long lists it is too high.
    """
    matches = [0] * (len(ordered.items) + 1)
    for _ in range(num_draws):
        drawn = policy.order(request, generator=generator).items
        matches[0] += 1
        for position, (item, shown) in enumerate(zip(drawn, ordered.items, strict=True), 1):
            if item != shown:
                break
            matches[position] += 1
    steps = [(matches[position + 1] + 1) / (matches[position] + 1) for position in range(len(ordered.items))]
    return msgspec.structs.replace(ordered, propensities=steps, no_propensities=None, propensity_draws=num_draws)
