"""Utility and disparity of trained policies on their training data; policies of the same data are measured together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from rankpolicy.data.batches import Batch
from rankpolicy.display import short_repr
from rankpolicy.models.stack import scores_of_each, stack_shape
from rankpolicy.objectives.fair_policy_gradient import FairPolicyGradient
from rankpolicy.objectives.value import can_merge

_MOST_ITEMS = 1 << 17  # of the queries of all policies that are measured at once


@dataclass(frozen=True, slots=True, eq=False)
class PolicyReport:
    """A trained policy to be measured.

    Parameters
    ----------
    network
        Its network.
    batch
        All training queries, in float64.
    objective
        What was maximised.
    """

    network: nn.Module
    batch: Batch
    objective: FairPolicyGradient

    __repr__ = short_repr


def report_policies(asked: Sequence[PolicyReport]) -> list[dict[str, Any]]:
    """What ``FairPolicyGradient.report`` gives for each policy.

    Parameters
    ----------
    asked
        The policies to be measured.
    """
    reports: dict[int, dict[str, Any]] = {}
    for places in _measured_together(asked):
        policies = [asked[place] for place in places]
        first, times = policies[0], len(policies)
        weight = next(first.network.parameters())
        with torch.no_grad():
            scores = scores_of_each([policy.network for policy in policies], first.batch.features.to(weight))
        found = first.objective.reports(
            first.batch.padding.pad(scores.double().cpu()),
            replace(first.batch.repeated(times), num_policies=times),
            strengths=[policy.objective.strength for policy in policies],
        )
        reports |= zip(places, found, strict=True)
    return [reports[place] for place in range(len(asked))]


def _measured_together(asked: Sequence[PolicyReport]) -> Iterator[list[int]]:
    """The places of policies of the same data whose networks can be stacked."""
    alike: list[list[int]] = []
    for place, policy in enumerate(asked):
        shape = stack_shape(policy.network)
        found = next(
            (
                places
                for places in alike
                for other in [asked[places[0]]]
                if shape is not None
                and other.batch is policy.batch
                and stack_shape(other.network) == shape
                and can_merge(other.objective, policy.objective)
            ),
            None,
        )
        if found is None:
            alike.append([place])
        else:
            found.append(place)
    for places in alike:
        step = max(1, _MOST_ITEMS // max(1, len(asked[places[0]].batch.features)))
        yield from (places[start : start + step] for start in range(0, len(places), step))
