"""The expected group disparity of a policy when labels are uncertain, as a function of exposure.

Labels are known by a distribution over scenarios s with probabilities p_s, in each of which group g has the mean merit M_g^s. The
disparity D^s of a scenario is that of ``group_disparity``; a scenario in which a group has no merit has none and adds 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.fairness.lp_post_processing import Slacks

Floats = NDArray[np.float64]


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpectedDisparity:
    """E[D] as a function of t, the total exposure of group 1 of two groups: convex and piecewise linear.

    Each scenario contributes slope * max(0, t - kink) where group 1 has at least the merit of group 0, and slope * max(0, kink - t) where
    it has at most that. With n_g members per group and T the total exposure of the query,

        kink = T n1 M1 / (n1 M1 + n0 M0),    slope = p (1 / (n1 M1) + 1 / (n0 M0))

    Parameters
    ----------
    kinks
        (scenario,).
    slopes_above
        Slope to the right of the kink (scenario,); 0 where more exposure of group 1 is never unfair.
    slopes_below
        Slope to the left, as a positive number (scenario,).
    """

    kinks: Floats
    slopes_above: Floats
    slopes_below: Floats

    def __call__(self, exposure: Floats) -> Floats:
        """E[D] at total exposures t of group 1.

        Parameters
        ----------
        exposure
            Values of t, in any order.
        """
        order = np.argsort(self.kinks)
        kinks, above, below = self.kinks[order], self.slopes_above[order], self.slopes_below[order]
        passed = np.searchsorted(kinks, exposure)
        sums = [_before(above), _before(above * kinks), _before(below), _before(below * kinks)]
        above_sum, above_kinks, below_sum, below_kinks = (total[passed] for total in sums)
        left = above_sum * exposure - above_kinks
        right = (sums[3][-1] - below_kinks) - (sums[2][-1] - below_sum) * exposure
        return np.asarray(np.maximum(left, 0.0) + np.maximum(right, 0.0))


def expected_disparity(
    scenarios: MeritScenarios, sizes: NDArray[np.int64], total: float, *, two_sided: bool = False
) -> ExpectedDisparity:
    """E[D] of two groups as a function of the exposure of group 1.

    Parameters
    ----------
    scenarios
        The distribution of the groups' merits.
    sizes
        Number of items of group 0 and of group 1.
    total
        Total exposure of the query, the sum of its position bias.
    two_sided
        Whether exposure above merit is unfair to both sides, D = abs(E1 / M1 - E0 / M0), instead of the paper's D, in which only the
        group of higher merit can have too much.

    >>> half = MeritScenarios(merits=np.array([[1.0, 3.0]]), probabilities=np.array([1.0]))
    >>> disparity = expected_disparity(half, np.array([1, 1]), 2.0)
    >>> disparity.kinks.tolist(), disparity(np.array([1.5, 1.8])).round(6).tolist()  # 1.8 / 3 - 0.2 / 1
    ([1.5], [0.0, 0.4])
    """
    counted = scenarios.with_disparity()
    zero, one = (counted.merits * sizes).T
    slopes = counted.probabilities * (1 / one + 1 / zero)
    lower, higher = counted.merits[:, 0] <= counted.merits[:, 1], counted.merits[:, 0] >= counted.merits[:, 1]
    return ExpectedDisparity(
        kinks=total * one / (one + zero),
        slopes_above=np.where(lower | two_sided, slopes, 0.0),
        slopes_below=np.where(higher | two_sided, slopes, 0.0),
    )


def disparity_slacks(scenarios: MeritScenarios, codes: NDArray[np.int64], *, two_sided: bool = False) -> Slacks | None:
    """E[D] of any number of groups for the linear program: one slack per scenario and pair; None where no scenario has a disparity.

    Parameters
    ----------
    scenarios
        The distribution of the groups' merits.
    codes
        Group 0, 1, ... of each item (item,).
    two_sided
        As in ``expected_disparity``.
    """
    counted = scenarios.with_disparity()
    if len(counted.merits) == 0:
        return None
    num_groups = counted.merits.shape[1]
    pairs = list(combinations(range(num_groups), 2))
    members = (codes == np.arange(num_groups)[:, None]) / np.bincount(codes, minlength=num_groups)[:, None]
    differences: list[Floats] = []
    slack_of: list[int] = []
    costs: list[float] = []
    for merits, probability in zip(counted.merits, counted.probabilities, strict=True):
        treatment = members / merits[:, None]
        for a, b in pairs:
            if two_sided or merits[a] >= merits[b]:
                differences.append(treatment[a] - treatment[b])
                slack_of.append(len(costs))
            if two_sided or merits[b] >= merits[a]:
                differences.append(treatment[b] - treatment[a])
                slack_of.append(len(costs))
            costs.append(probability / len(pairs))
    return Slacks(differences=np.array(differences), slack_of=np.array(slack_of), costs=np.array(costs))


def _before(values: Floats) -> Floats:
    """Sums of all values before each place (values + 1,)."""
    return np.concatenate([[0.0], np.cumsum(values)])
