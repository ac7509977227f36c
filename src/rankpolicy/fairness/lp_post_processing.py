"""Fair exposure by linear programming, one query at a time, on relevances that some other method estimated.

    maximise  uᵀ P v - strength * D    over doubly stochastic P (item, position)

with u the relevances, v the position bias and D the group disparity of the exposure P v (Singh & Joachims 2018; 2019, appendix B.3). D
enters by one slack a pair of groups, ξ >= E_a / M_a - E_b / M_b for M_a >= M_b, ξ >= 0, and is their mean. Solved by HiGHS through scipy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rankpolicy.fairness.exposure import position_bias
from rankpolicy.fairness.group_disparity import group_disparity
from rankpolicy.fairness.groups import encode_groups
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FairRanking:
    """A distribution over rankings as a matrix, and what it reaches on the relevances it was computed from."""

    probabilities: Floats  # (item, position), doubly stochastic
    utility: float  # uᵀ P v
    disparity: float  # of groups; NaN where it says nothing: a group is absent or has no merit, and items are sorted by relevance

    @property
    def is_constrained(self) -> bool:
        return not math.isnan(self.disparity)


def penalized_ranking(
    relevances: ArrayLike,
    groups: ArrayLike,
    *,
    strength: float,
    bias: ArrayLike | None = None,
    merit: ArrayLike | None = None,
) -> FairRanking:
    """The P that maximises utility minus ``strength`` times group disparity.

    ``merit`` is what the groups deserve exposure for, by default the relevances; ``bias`` is 1 / log2(1 + j) by default.

    >>> fair = penalized_ranking([3.0, 2.0], ["a", "b"], strength=100.0, bias=[1.0, 0.5])
    >>> fair.probabilities.round(6).tolist(), round(fair.disparity, 9)  # exposures 0.9 and 0.6 are as 3 to 2
    ([[0.8, 0.2], [0.2, 0.8]], 0.0)
    """
    if not strength >= 0:
        raise RankPolicyError(f"strength must be 0 or more; got {strength}.")
    return _solve(relevances, groups, bias, merit, strength=strength, max_disparity=None)


def constrained_ranking(
    relevances: ArrayLike,
    groups: ArrayLike,
    *,
    max_disparity: float,
    bias: ArrayLike | None = None,
    merit: ArrayLike | None = None,
) -> FairRanking:
    """The P of highest utility with a group disparity of at most ``max_disparity``; the other options are those of ``penalized_ranking``.

    >>> fair = constrained_ranking([3.0, 2.0], ["a", "b"], max_disparity=0.0, bias=[1.0, 0.5])
    >>> round(fair.utility, 6)  # 3 * 0.9 + 2 * 0.6; sorted by relevance it would be 4
    3.9
    """
    if not max_disparity >= 0:
        raise RankPolicyError(f"max_disparity must be 0 or more; got {max_disparity}.")
    return _solve(relevances, groups, bias, merit, strength=0.0, max_disparity=max_disparity)


def _solve(
    relevances: ArrayLike,
    groups: ArrayLike,
    bias: ArrayLike | None,
    merit: ArrayLike | None,
    *,
    strength: float,
    max_disparity: float | None,
) -> FairRanking:
    u, codes = np.asarray(relevances, dtype=np.float64), encode_groups(groups).codes.numpy()
    deserved = u if merit is None else np.asarray(merit, dtype=np.float64)
    _check(u, codes, deserved)
    n, num_groups = len(u), codes.max() + 1
    v = position_bias(n, kind="log2" if bias is None else torch.as_tensor(bias), dtype=torch.float64).numpy()
    M = np.bincount(codes, deserved) / np.bincount(codes)
    if num_groups < 2 or M.min() <= 0:
        sorted_by_relevance = np.zeros((n, n))
        sorted_by_relevance[np.argsort(-u, kind="stable"), np.arange(n)] = 1
        return FairRanking(
            probabilities=sorted_by_relevance, utility=float(u @ sorted_by_relevance @ v), disparity=math.nan
        )
    pairs = [(a, b) for a, b in permutations(range(num_groups), 2) if M[a] >= M[b]]
    P = _optimum(u, v, _differences(codes, M, pairs), pairs, strength, max_disparity)
    reached = group_disparity(*(torch.from_numpy(x)[None] for x in (P @ v, _merits(codes, M), codes, np.ones(n, bool))))
    return FairRanking(probabilities=P, utility=float(u @ P @ v), disparity=reached.mean)


def _differences(codes: NDArray[np.int64], M: Floats, pairs: list[tuple[int, int]]) -> Floats:
    """(pair, item): times exposure gives E_a / M_a - E_b / M_b."""
    shares = (codes == np.arange(len(M))[:, None]) / (np.bincount(codes) * M)[:, None]
    return np.array([shares[a] - shares[b] for a, b in pairs])


def _merits(codes: NDArray[np.int64], M: Floats) -> Floats:
    # The group's merit for each member: estimated relevances of single items may be negative, where their mean is not.
    return M[codes]


def _optimum(
    u: Floats,
    v: Floats,
    differences: Floats,
    pairs: list[tuple[int, int]],
    strength: float,
    max_disparity: float | None,
) -> Floats:
    """Variables: P row by row, then the slack of each pair of groups, which equal merits share between both orders."""
    sparse: Any = require("scipy.sparse", "Fair ranking by linear programming")
    linprog = require("scipy.optimize", "Fair ranking by linear programming").linprog
    n = len(u)
    unordered = sorted({tuple(sorted(pair)) for pair in pairs})
    slack_of = np.array([unordered.index(tuple(sorted(pair))) for pair in pairs])
    slacks = sparse.csr_array(
        (np.ones(len(pairs)), (np.arange(len(pairs)), slack_of)), shape=(len(pairs), len(unordered))
    )
    identity, ones = sparse.eye_array(n), np.ones((1, n))
    sums = sparse.vstack([sparse.kron(identity, ones), sparse.kron(ones, identity)])
    upper = [sparse.hstack([sparse.csr_array(np.kron(differences, v)), -slacks])]
    limits = [np.zeros(len(pairs))]
    if max_disparity is not None:
        upper.append(sparse.hstack([sparse.csr_array((1, n * n)), sparse.csr_array(np.ones((1, len(unordered))))]))
        limits.append(np.array([max_disparity * len(unordered)]))
    found = linprog(
        np.concatenate([-np.outer(u, v).ravel(), np.full(len(unordered), strength / len(unordered))]),
        A_ub=sparse.vstack(upper),
        b_ub=np.concatenate(limits),
        A_eq=sparse.hstack([sums, sparse.csr_array((2 * n, len(unordered)))]),
        b_eq=np.ones(2 * n),
        bounds=(0, None),
        method="highs",
    )
    if found.status != 0:
        raise RankPolicyError(
            f"the linear program must have an optimum; HiGHS says: {found.message} Rescale relevances or bias."
        )
    return np.clip(found.x[: n * n].reshape(n, n), 0.0, 1.0)


def _check(u: Floats, codes: NDArray[np.int64], merit: Floats) -> None:
    if u.ndim != 1 or len(u) == 0 or codes.shape != u.shape or merit.shape != u.shape:
        raise RankPolicyError(
            "relevances, groups and merit must be vectors over the items of one query; "
            f"got shapes {u.shape}, {codes.shape} and {merit.shape}. Call once a query."
        )
    if not np.isfinite(u).all() or not np.isfinite(merit).all():
        raise RankPolicyError(
            "relevances and merit must be finite; got NaN or infinity. Check the model they come from."
        )
