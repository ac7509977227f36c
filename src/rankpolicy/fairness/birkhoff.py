"""A doubly stochastic matrix as a mixture of rankings: the decomposition of Birkhoff and von Neumann."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.arrays import as_like, no_values
from rankpolicy.optional import require
from rankpolicy.policies.mixture import Mixture
from rankpolicy.types import RankPolicyError

TOLERANCE = 1e-6  # of row and column sums; solvers of linear programs leave errors of about 1e-9
RESIDUAL = 1e-10  # of probability that may stay undistributed


class Decomposition(NamedTuple):
    """matrix = sum over terms of weights[term] * (permutation matrix of rankings[term]).

    Parameters
    ----------
    rankings
        (term, position).
    weights
        (term,) descending, summing to 1.
    """

    rankings: NDArray[np.int64]  # (term, position)
    weights: NDArray[np.float64]  # (term,)


def birkhoff_decomposition(matrix: ArrayLike) -> Decomposition:
    """Write a doubly stochastic matrix (item, position) as a mixture of at most (n - 1)² + 1 rankings (Birkhoff 1946).

    Greedy: the ranking with the highest product of remaining probabilities takes the lowest of them, which empties at least one cell.

    Parameters
    ----------
    matrix
        Probability of each item at each position (item, position), square; rows and columns sum to 1.

    >>> rankings, weights = birkhoff_decomposition([[0.75, 0.25], [0.25, 0.75]])
    >>> rankings.tolist(), weights.tolist()
    ([[0, 1], [1, 0]], [0.75, 0.25])
    """
    assign = require("scipy.optimize", "The Birkhoff decomposition").linear_sum_assignment
    remaining = _scaled(np.asarray(matrix, dtype=np.float64))
    positions = np.arange(len(remaining))
    rankings, weights = [], []
    undistributed = 1.0
    while undistributed > RESIDUAL:
        # Cells that are 0 up to rounding count as empty; the high cost is paid only where every ranking uses one.
        is_empty = remaining <= RESIDUAL / len(remaining)
        cost = np.where(is_empty, 1e6, -np.log(np.where(is_empty, 1.0, remaining)))
        _, ranking = assign(cost.T)
        weight = remaining[ranking, positions].min()
        if is_empty[ranking, positions].any():
            break
        remaining[ranking, positions] -= weight
        undistributed -= weight
        rankings.append(ranking)
        weights.append(weight)
    order = np.argsort(weights, kind="stable")[::-1]
    share = np.array(weights)[order]
    return Decomposition(np.array(rankings, dtype=np.int64)[order], share / share.sum())


def mixture_of(matrices: Sequence[ArrayLike], *, dtype: Any = None) -> Mixture:
    """The mixture policy of queries with these doubly stochastic matrices, padded to the longest query.

    Parameters
    ----------
    matrices
        One matrix (item, position) per query.
    dtype
        Of the weights of the policy: one of torch makes it a policy over tensors; by default it is over arrays, with float64 weights.

    >>> mixture_of([[[0.75, 0.25], [0.25, 0.75]], [[1.0]]]).exposure([1.0, 0.5])
    array([[0.875, 0.625],
           [1.   , 0.   ]])
    """
    if not matrices:
        raise RankPolicyError("a mixture needs the matrix of at least one query; got an empty list.")
    return joint_mixture([birkhoff_decomposition(matrix) for matrix in matrices], dtype=dtype)


def joint_mixture(mixtures: Sequence[Decomposition], *, dtype: Any = None) -> Mixture:
    """The mixture policy of queries with these mixtures, padded to the longest query.

    Parameters
    ----------
    mixtures
        Rankings and weights of each query.
    dtype
        Of the weights of the policy: one of torch makes it a policy over tensors; by default it is over arrays, with float64 weights.
    """
    sizes = [mixture.rankings.shape[1] for mixture in mixtures]
    longest, most = max(sizes), max(len(mixture.weights) for mixture in mixtures)
    rankings = np.tile(np.arange(longest), (most, len(mixtures), 1))
    weights = np.zeros((most, len(mixtures)))
    for query, (mixture, size) in enumerate(zip(mixtures, sizes, strict=True)):
        rankings[: len(mixture.weights), query, :size] = mixture.rankings
        weights[: len(mixture.weights), query] = mixture.weights
    return Mixture(rankings, as_like(weights, no_values(dtype=dtype)), np.arange(longest) < np.array(sizes)[:, None])


def _scaled(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Checked, and rounding errors of row and column sums removed (Sinkhorn & Knopp 1967)."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise RankPolicyError(f"a doubly stochastic matrix must be square, (item, position); got shape {matrix.shape}.")
    error = max(-matrix.min(), np.abs(matrix.sum(0) - 1).max(), np.abs(matrix.sum(1) - 1).max())
    if not error <= TOLERANCE:
        raise RankPolicyError(
            "a doubly stochastic matrix must be 0 or more with rows and columns that sum to 1; "
            f"got lowest entry {matrix.min():g}, row sums {matrix.sum(1).min():g} to {matrix.sum(1).max():g}, "
            f"column sums {matrix.sum(0).min():g} to {matrix.sum(0).max():g}."
        )
    scaled = np.where(matrix > RESIDUAL / len(matrix), matrix, 0.0)
    for _ in range(20):
        scaled /= scaled.sum(0)
        scaled /= scaled.sum(1, keepdims=True)
    return scaled
