"""Scenarios of the labels of one query: expected values of its items, and the distribution of its groups' merits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankpolicy.fairness.exposure import MeritFunction, merit_of

Floats = NDArray[np.float64]
_RARE = 1e-12  # scenarios of a lower probability are left out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeritScenarios:
    """Mean merits of the groups of one query, scenario by scenario.

    Parameters
    ----------
    merits
        Mean merit of each group (scenario, group), 0 or more.
    probabilities
        Probability of each scenario (scenario,).
    """

    merits: Floats  # (scenario, group)
    probabilities: Floats  # (scenario,)

    def with_disparity(self) -> MeritScenarios:
        """The scenarios in which every group has merit, with their probabilities as they are."""
        counted = (self.merits > 0).all(-1) & (self.probabilities > 0)
        return MeritScenarios(merits=self.merits[counted], probabilities=self.probabilities[counted])


class UncertainQuery(NamedTuple):
    """What a fair policy needs to know of a query whose labels are uncertain."""

    values: Floats  # (item,)
    scenarios: MeritScenarios  # the distribution of the groups' mean merits


def sampled_scenarios(
    labels: Floats,  # (sample, item)
    codes: NDArray[np.int64],  # (item,)
    bias: Floats,  # (position,)
    *,
    gain: str = "exp2",
    merit: str | MeritFunction = "identity",
) -> UncertainQuery:
    """Equally likely scenarios, one per sample of the labels.

    >>> query = sampled_scenarios(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0, 1]), np.array([1.0, 0.5]))
    >>> query.values.round(4).tolist(), query.scenarios.merits.tolist()  # (1 + 1 / 1.5) / 2 and (0 + 1 / 1.5) / 2
    ([0.8333, 0.3333], [[1.0, 0.0], [1.0, 1.0]])
    """
    gains = gain_of(labels, gain)
    ideal = -np.sort(-gains, axis=1) @ bias
    shares = np.divide(gains, ideal[:, None], out=np.zeros_like(gains), where=ideal[:, None] > 0)
    merits = merit_of(labels, merit)
    members = codes[:, None] == np.arange(codes.max() + 1)  # (item, group)
    return UncertainQuery(
        values=shares.mean(0),
        scenarios=MeritScenarios(
            merits=merits @ members / members.sum(0), probabilities=np.full(len(labels), 1 / len(labels))
        ),
    )


def binary_scenarios(
    probabilities: Floats, codes: NDArray[np.int64], bias: Floats, *, merit: str | MeritFunction = "identity"
) -> UncertainQuery:
    """All scenarios of independent labels 0 and 1 in one or two groups, exactly: merits depend on the number of ones per group only.

    >>> query = binary_scenarios(np.array([1.0, 0.5]), np.array([0, 1]), np.array([1.0, 0.5]))
    >>> query.values.round(4).tolist(), query.scenarios.merits.tolist()
    ([0.8333, 0.3333], [[1.0, 0.0], [1.0, 1.0]])
    """
    n = len(probabilities)
    # E[1 / ideal DCG] of an item that is relevant: with k others, the ideal ranking has 1 + k ones.
    inverse_ideal = 1 / np.cumsum(bias[:n])
    values = probabilities * (counts_without_each(probabilities) @ inverse_ideal)
    worthless, worthy = merit_of(np.array([0.0, 1.0]), merit).tolist()
    counts = [poisson_binomial(probabilities[codes == group]) for group in range(int(codes.max()) + 1)]
    merits = [worthless + (worthy - worthless) * np.arange(len(count)) / max(1, len(count) - 1) for count in counts]
    if len(counts) == 1:
        return UncertainQuery(
            values=values, scenarios=MeritScenarios(merits=merits[0][:, None], probabilities=counts[0])
        )
    joint = np.outer(*counts)
    ones_of_0, ones_of_1 = np.nonzero(joint > _RARE)
    return UncertainQuery(
        values=values,
        scenarios=MeritScenarios(
            merits=np.stack([merits[0][ones_of_0], merits[1][ones_of_1]], axis=1),
            probabilities=joint[ones_of_0, ones_of_1],
        ),
    )


def poisson_binomial(probabilities: Floats) -> Floats:
    """Distribution of the number of ones (count,) among independent labels, from 0 to all.

    >>> poisson_binomial(np.array([0.5, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    counts = np.ones(1)
    for p in probabilities:
        counts = np.append(counts * (1 - p), 0.0) + np.append(0.0, counts * p)
    return counts


def counts_without_each(probabilities: Floats) -> Floats:
    """For each item, the distribution of the number of ones among the others (item, count), from 0 to all others.

    With f the distribution among all and g that among the others, f[k] = (1 - p) g[k] + p g[k - 1]. It is solved for g from the lower end
    where p <= 0.5 and from the upper end elsewhere, so that rounding errors shrink from step to step.

    >>> counts_without_each(np.array([0.5, 0.25])).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    n, every = len(probabilities), poisson_binomial(probabilities)
    is_low = probabilities <= 0.5
    rare, often = np.where(is_low, probabilities, 0.0), np.where(is_low, 1.0, probabilities)
    from_below, from_above = (
        np.zeros((n + 1, n)),
        np.zeros((n + 1, n)),
    )  # (count, item); one row more for the step before the first
    for k in range(n):
        from_below[k] = (every[k] - rare * from_below[k - 1]) / (1 - rare)
        above = n - 1 - k
        from_above[above] = (every[above + 1] - (1 - often) * from_above[above + 1]) / often
    return np.where(is_low, from_below, from_above)[:n].T.clip(min=0.0)


def gain_of(labels: Floats, gain: str) -> Floats:
    """The gain of labels in DCG."""
    return np.exp2(labels) - 1 if gain == "exp2" else np.array(labels, dtype=np.float64)
