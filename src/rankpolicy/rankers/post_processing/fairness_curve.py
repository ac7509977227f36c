"""Utility and disparities of a fair policy over strengths, and the strength that keeps a wanted disparity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.fairness import encode_groups, exposure_difference, group_disparity, merit_of, position_bias
from rankpolicy.fairness.exposure_parity import treatment_difference
from rankpolicy.policies.mixture import Mixture
from rankpolicy.rankers.post_processing.fair_ranker import ndcg_values
from rankpolicy.types import RankPolicyError

_STRENGTHS = tuple(float(f"{strength:.3g}") for strength in np.geomspace(0.01, 1000, 41))
_FEW_STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)  # where each takes a linear program per query
_MOST_QUERIES, _FEW_QUERIES = 2000, 30


def curve_strengths(num_groups: int) -> list[float]:
    """The strengths of a curve, ascending, from 0 to infinity (equal exposure); fewer where there are more than two groups."""
    return [0.0, *(_STRENGTHS if num_groups <= 2 else _FEW_STRENGTHS), math.inf]


def queries_to_measure(train: RankingDataset, num_groups: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of the queries that are measured: all, or some at random where there are many."""
    most = _MOST_QUERIES if num_groups <= 2 else _FEW_QUERIES
    if train.num_queries <= most:
        return np.arange(train.num_queries)
    return np.sort(generator.permutation(train.num_queries)[:most])


def measure_policy(policy: Mixture, dataset: RankingDataset, *, merit: str, gain: str) -> dict[str, Any]:
    """Utility and disparities of a policy on labelled queries; None where no query has one."""
    assert dataset.groups_by_query is not None
    padding = dataset.padding()
    labels = padding.pad(dataset.labels_by_query.astype(np.float64))
    codes, names = encode_groups(dataset.groups_by_query)
    groups, mask = padding.pad(codes), padding.mask
    exposure = policy.exposure(position_bias(labels.shape[-1]))
    merits = merit_of(labels, merit)
    disparity = group_disparity(exposure, merits, groups, mask, num_groups=max(2, len(names)))
    return {
        "utility": float((ndcg_values(labels, mask, gain) * exposure).sum(-1).mean()),
        "disparity": None if math.isnan(disparity.mean) else disparity.mean,
        "treatment_difference": _mean(treatment_difference(exposure, merits, groups, mask)),
        "exposure_difference": _mean(exposure_difference(exposure, groups, mask)),
        "queries_left_out": dict(disparity.left_out),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessCurve:
    """What policies of ascending strengths measure."""

    strengths: tuple[float, ...]  # ascending, infinity last
    measured: tuple[Mapping[str, Any], ...]  # the results of ``measure_policy``, one per strength
    # whether the policies are those of the two-sided aim, and "treatment_difference" is what is bound instead of
    # "disparity"
    two_sided: bool = False

    def row_at(self, strength: float) -> dict[str, Any]:
        """What was measured at one of the strengths."""
        return self.to_rows()[self.strengths.index(strength)]

    def strength_for(self, max_disparity: float) -> float:
        """The lowest strength from which on the disparity is at most the wanted one; infinity if no other is."""
        name = "treatment_difference" if self.two_sided else "disparity"
        values = [math.inf if row[name] is None else row[name] for row in self.measured]
        if all(math.isinf(value) for value in values):
            return 0.0
        chosen = math.inf
        for strength, value in zip(reversed(self.strengths[:-1]), reversed(values[:-1]), strict=True):
            if value > max_disparity or max_disparity == 0:
                break
            chosen = strength
        return chosen

    def to_rows(self) -> list[dict[str, Any]]:
        """One row per strength, as JSON can hold them."""
        rows = zip(self.strengths, self.measured, strict=True)
        return [{"strength": strength, **measured} for strength, measured in rows]

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], *, two_sided: bool = False) -> FairnessCurve:
        """Read what ``to_rows`` gave."""
        strengths = tuple(float(row["strength"]) for row in rows)
        if list(strengths) != sorted(strengths) or not strengths or not strengths[0] >= 0:
            raise RankPolicyError("the strengths of a curve must be ascending. Copy or train the model again.")
        return cls(
            two_sided=two_sided,
            strengths=strengths,
            measured=tuple({name: value for name, value in row.items() if name != "strength"} for row in rows),
        )


def _mean(values: NDArray[np.float64]) -> float | None:
    """Mean over the queries that have a value."""
    return None if np.isnan(values).all() else float(np.nanmean(values))
