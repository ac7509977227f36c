"""The best fair policy of one query when labels are known only by a distribution: maximise E[utility] - strength * E[disparity].

Disparity is convex in exposure and not linear in labels, so its value at expected labels is not its expected value: a policy that is fair
to point estimates may be far from fair to the labels that come. Here the expectation is over scenarios of labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.fairness.birkhoff import Decomposition, birkhoff_decomposition
from rankpolicy.fairness.label_scenarios import MeritScenarios
from rankpolicy.fairness.lp_post_processing import Slacks, best_probabilities
from rankpolicy.fairness.two_groups import ExposureFrontier, expected_disparity, exposure_frontier
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]
_SAME = 1e-12  # objectives that differ by less are equal; of equal ones the fairer policy is taken


def fair_policies(
    values: Floats,
    codes: NDArray[np.int64],
    scenarios: MeritScenarios,
    *,
    strengths: Sequence[float],
    bias: Floats,
    two_sided: bool = False,
) -> list[Decomposition]:
    """The policies of one query that maximise sum of values * exposure - strength * E[D], one per strength.

    With two groups all of it depends on t, the total exposure of group 1: U*(t) - strength * E[D](t), the difference of a concave and a
    convex piecewise linear function, is highest at a vertex of one, a kink of the other, or the t of equal exposure; the policy mixes at
    most two rankings. More groups take a linear program with one slack per scenario and pair of groups.

    Parameters
    ----------
    values
        Expected value of each item's exposure (item,), such as E[gain / ideal DCG].
    codes
        Group 0, 1, ... of each item (item,); every group up to the highest has members.
    scenarios
        The distribution of the mean merits of these groups.
    strengths
        Weights of the expected disparity, 0 or more. Infinity gives all groups the same mean exposure: then D is 0 whatever the labels
        are; with ``two_sided`` it gives the least E[D].
    bias
        Position bias (position,), one per item, never increasing.
    two_sided
        Whether D = abs(E_a / M_a - E_b / M_b) for each pair, instead of the paper's, in which only the group of higher merit can have
        too much exposure.

    >>> sure = MeritScenarios(merits=np.array([[3.0, 2.0]]), probabilities=np.array([1.0]))
    >>> (fair,) = fair_policies(np.array([3.0, 2.0]), np.array([0, 1]), sure, strengths=[100.0], bias=np.array([1.0, 0.5]))
    >>> fair.rankings.tolist(), fair.weights.round(6).tolist()  # exposures 0.9 and 0.6 are as 3 to 2
    ([[0, 1], [1, 0]], [0.8, 0.2])
    """
    num_groups = int(codes.max()) + 1
    if scenarios.merits.shape != (len(scenarios.probabilities), num_groups):
        raise RankPolicyError(
            "scenarios must have one merit per scenario and group, "
            f"({len(scenarios.probabilities)}, {num_groups}); got {scenarios.merits.shape}."
        )
    if num_groups == 1:
        return [_sorted(values)] * len(strengths)
    if num_groups == 2:
        frontier = exposure_frontier(values, codes == 1, bias)
        best = _best_exposures(frontier, codes, scenarios, strengths, bias, two_sided=two_sided)
        return [frontier.policy(exposure) for exposure in best]
    return [_by_program(values, codes, scenarios, strength, bias, two_sided=two_sided) for strength in strengths]


def _best_exposures(
    frontier: ExposureFrontier,
    codes: NDArray[np.int64],
    scenarios: MeritScenarios,
    strengths: Sequence[float],
    bias: Floats,
    *,
    two_sided: bool,
) -> list[float]:
    """The t of each strength, among vertices, kinks and equal exposure."""
    sizes, total = np.bincount(codes, minlength=2), float(bias.sum())
    disparity = expected_disparity(scenarios, sizes, total, two_sided=two_sided)
    equal = total * sizes[1] / len(codes)
    candidates = np.unique(np.concatenate([frontier.exposures, disparity.kinks, [equal]]))
    candidates = candidates[(candidates >= frontier.exposures[0]) & (candidates <= frontier.exposures[-1])]
    utilities, disparities = frontier.utility(candidates), disparity(candidates)
    return [
        equal if math.isinf(strength) and not two_sided else float(candidates[_best(utilities, disparities, strength)])
        for strength in strengths
    ]


def _best(utilities: Floats, disparities: Floats, strength: float) -> int:
    if math.isinf(strength):
        allowed = disparities <= disparities.min() + _SAME
        return int(np.argmax(np.where(allowed, utilities, -math.inf)))
    objectives = utilities - strength * disparities
    is_best = objectives >= objectives.max() - _SAME * max(1.0, strength)
    return int(np.argmin(np.where(is_best, disparities, math.inf)))


def _by_program(
    values: Floats,
    codes: NDArray[np.int64],
    scenarios: MeritScenarios,
    strength: float,
    bias: Floats,
    *,
    two_sided: bool,
) -> Decomposition:
    if math.isinf(strength) and not two_sided:
        equal = MeritScenarios(merits=np.ones((1, scenarios.merits.shape[1])), probabilities=np.ones(1))
        slacks = disparity_slacks(equal, codes)
        assert slacks is not None
        return birkhoff_decomposition(best_probabilities(values, bias, slacks, max_disparity=0.0))
    slacks = disparity_slacks(scenarios, codes, two_sided=two_sided)
    if slacks is None:
        return _sorted(values)
    # Past this weight no utility is worth any disparity: utilities differ by at most `spread`.
    spread = float(np.abs(values).sum() * bias.sum())
    weight = min(strength, 1e6 * max(spread, 1e-6))
    return birkhoff_decomposition(best_probabilities(values, bias, slacks, strength=weight))


def disparity_slacks(scenarios: MeritScenarios, codes: NDArray[np.int64], *, two_sided: bool = False) -> Slacks | None:
    """E[D] of any number of groups for the linear program: one slack per scenario and pair; None where no scenario has a disparity."""
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


def _sorted(values: Floats) -> Decomposition:
    return Decomposition(np.argsort(-values, kind="stable")[None], np.ones(1))
