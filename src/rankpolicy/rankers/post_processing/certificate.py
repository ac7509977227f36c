"""The strength at which the mean disparity of new queries is below a bound with a stated confidence, from held-out queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.evaluation.mean_bound import log_capital
from rankpolicy.fairness import encode_groups, group_disparity, merit_of, position_bias
from rankpolicy.policies.mixture import Mixture
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]
Policies = Callable[[RankingDataset], list[Mixture]]  # of a dataset, one per strength


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a certificate is for.

    Parameters
    ----------
    level
        The probability.
    max_disparity
        The bound on the mean disparity.
    wrong_groups
        Highest share of items whose group is wrong when they are ranked.
    held_out_groups
        "right", or "noisy" where those of the held-out queries are wrong as often.
    """

    level: float
    max_disparity: float
    wrong_groups: float
    held_out_groups: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What was certified, and by which queries.

    With probability ``terms.level`` over the held-out queries, E[min(D, highest_disparity)] <= terms.max_disparity for the policy of
    ``strength`` on new queries that come from where the held-out ones came and have a disparity.
    """

    terms: Terms
    strength: float
    num_queries: int  # held-out queries with a disparity
    highest_disparity: float

    def to_dict(self) -> dict[str, Any]:
        """All values by name, as JSON can hold them."""
        return {name: value for name, value in asdict(self).items() if name != "terms"} | asdict(self.terms)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Certificate:
        """Read what ``to_dict`` gave."""
        others = dict(values)
        return cls(terms=Terms(**{field.name: others.pop(field.name) for field in fields(Terms)}), **others)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldOut:
    """Disparities of policies on held-out queries, and what each query counts.

    Parameters
    ----------
    values
        Disparities (policy, query) of the queries that have one.
    weights
        (query,): 1, or where the groups are noisy the weight, of either sign, that corrects for it in expectation.
    largest_weight
        The largest absolute weight that a query could have.
    """

    values: Floats  # (policy, query)
    weights: Floats  # (query,)
    largest_weight: float = 1.0

    def certifies(self, index: int, terms: Terms, highest: float) -> bool:
        """Whether a mean disparity above ``max_disparity`` is refuted for a policy: a bet against it grew by 1 / (1 - level)."""
        gains = self.weights * (terms.max_disparity - np.minimum(self.values[index], highest))
        largest_loss = self.largest_weight * max(highest, terms.max_disparity)
        return log_capital(gains, largest_loss=largest_loss) >= -math.log1p(-terms.level)


def certified(
    policies: Policies,
    held_out: RankingDataset,
    terms: Terms,
    *,
    strengths: Sequence[float],  # ascending
    highest: float,
    merit: str,
    generator: np.random.Generator,
) -> Certificate:
    """The certificate of the lowest strength that passes for each rate of wrong groups that is tried."""
    rates = (0.0, terms.wrong_groups / 2, terms.wrong_groups) if terms.wrong_groups else (0.0,)
    by_rate = [
        measured_with_wrong_groups(policies, held_out, rate, terms.held_out_groups, merit=merit, generator=generator)
        for rate in rates
    ]
    index = lowest_certified(by_rate, strengths, terms, highest)
    num_queries = by_rate[0].values.shape[1]
    if index is None:
        raise RankPolicyError(
            f"no strength can be certified to keep max_disparity={terms.max_disparity:g} with probability {terms.level:g} on "
            f"{num_queries} held-out queries with a disparity. Give more held-out queries, or set a higher max_disparity."
        )
    return Certificate(terms=terms, strength=strengths[index], num_queries=num_queries, highest_disparity=highest)


def lowest_certified(
    by_rate: Sequence[HeldOut], strengths: Sequence[float], terms: Terms, highest: float
) -> int | None:
    """The number of the lowest strength that passes; None if even the fairest policy does not.

    Strengths are tested from the fairest on, each at the full level, up to the first that fails: of tests in a fixed order the first
    error stops all, so their number costs nothing (Learn then Test, Angelopoulos et al. 2021).
    """
    lowest = None
    for index in reversed(range(len(strengths))):
        # Equal exposure of groups that are known has no disparity, whatever the labels are.
        is_parity = math.isinf(strengths[index]) and not terms.wrong_groups
        if not is_parity and not all(held_out.certifies(index, terms, highest) for held_out in by_rate):
            break
        lowest = index
    return lowest


def measured_with_wrong_groups(
    policies: Policies,
    held_out: RankingDataset,
    rate: float,
    held_out_groups: str,
    *,
    merit: str,
    generator: np.random.Generator,
) -> HeldOut:
    """Disparities by right groups of policies that see wrong ones, changed at random at a rate.

    Noisy groups A' of the held-out queries are changed at random once more, to A*, and each query is weighted by norm^n (-1)^(number of
    changes). This is the inverse of the noise: for any f, the expectation of weight * f(A*) is f(A), A the right groups, if
    errors are independent of all else. The policy then sees A* with errors, as it sees A with errors in new queries. For k groups
    norm = (1 + r - r / (k - 1)) / (1 - r k / (k - 1)), and 1 / (1 - 2 r) for two: the longer the queries, the more of them it takes.
    """
    num_groups = len(encode_groups(_groups(held_out)).names)
    right, is_changed, norm = held_out, np.zeros(held_out.num_items, bool), 1.0
    if held_out_groups == "noisy" and rate:
        to_each = rate / (num_groups - 1)
        if rate + to_each >= 1:
            raise RankPolicyError(
                f"groups that are wrong at a rate of {rate:g} say nothing; give a lower wrong_groups."
            )
        norm = (1 - to_each + rate) / (1 - rate - to_each)
        right, is_changed = with_wrong_groups(held_out, rate / (1 - to_each + rate), generator)
    seen, _ = with_wrong_groups(right, rate, generator)
    values, is_counted = disparities(policies(seen), right, merit=merit)
    if not is_counted.any():
        raise RankPolicyError("no held-out query has a disparity: each lacks a group, or a group has no merit in it.")
    num_changes = np.bincount(held_out.query_numbers, is_changed, minlength=held_out.num_queries)
    weights: Floats = np.float64(norm) ** held_out.sizes * np.where(num_changes % 2, -1.0, 1.0)
    return HeldOut(
        values=values[:, is_counted],
        weights=weights[is_counted],
        largest_weight=float(norm ** int(held_out.sizes.max())),
    )


def disparities(
    policies: Sequence[Mixture], dataset: RankingDataset, *, merit: str
) -> tuple[Floats, NDArray[np.bool_]]:
    """The disparity (policy, query) by the groups of the dataset, and which queries have one."""
    padding = dataset.padding()
    labels = padding.pad(dataset.labels_by_query.astype(np.float64))
    codes, names = encode_groups(_groups(dataset))
    groups, merits = padding.pad(codes), merit_of(labels, merit)
    bias = position_bias(labels.shape[-1])
    of_policies = [
        group_disparity(policy.exposure(bias), merits, groups, padding.mask, num_groups=max(2, len(names)))
        for policy in policies
    ]
    return np.stack([of_policy.values for of_policy in of_policies]), of_policies[0].is_counted


def with_wrong_groups(
    dataset: RankingDataset, rate: float, generator: np.random.Generator
) -> tuple[RankingDataset, NDArray[np.bool_]]:
    """The dataset with the groups of a share of its items, drawn at random, changed to another group; and which were changed."""
    codes, names = encode_groups(_groups(dataset))
    is_wrong = generator.random(len(codes)) < rate
    shifts = generator.integers(1, max(2, len(names)), len(codes)) * is_wrong
    return replace(dataset, groups_by_query=np.asarray(names)[(codes + shifts) % len(names)]), is_wrong


def highest_disparity(train: RankingDataset, *, merit: str) -> float:
    """The highest disparity that any policy could have on queries with group sizes and merits as in the training data.

    With n members the exposure of a group is at most the mean of the n highest position biases, and at least that of the n lowest. So
    D <= (highest E_a - lowest E_b) / M_a, as M_a >= M_b. 0 where no query has a disparity.
    """
    merits, groups = merit_of(train.labels_by_query.astype(np.float64), merit), encode_groups(_groups(train))
    means = [np.zeros(1)]
    for start, stop in zip(train.query_offsets[:-1], train.query_offsets[1:], strict=True):
        codes, bias = groups.codes[start:stop], position_bias(int(stop - start))
        sizes = np.bincount(codes)
        if (sizes > 0).sum() < 2:
            continue
        sizes, merit_means = sizes[sizes > 0], (np.bincount(codes, merits[start:stop])[sizes > 0] / sizes[sizes > 0])
        best, worst = np.cumsum(bias)[sizes - 1] / sizes, np.cumsum(bias[::-1])[sizes - 1] / sizes
        counted = np.minimum.outer(merit_means, merit_means) > 0
        np.fill_diagonal(counted, False)
        contrast = (best[:, None] - worst) / np.maximum(1e-300, np.maximum.outer(merit_means, merit_means))
        means.append(contrast[counted])
    return float(np.concatenate(means).max())


def _groups(dataset: RankingDataset) -> NDArray[Any]:
    return np.asarray(dataset.groups_by_query)
