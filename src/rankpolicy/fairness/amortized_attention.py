"""Equity of attention: over a sequence of rankings, the attention an item has had stays close to its relevance (Biega et al. 2018)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]
_ROUNDING = 1e-9
_EVENNESS = (
    1e-4  # many assignments have the same sum of absolute values: without it the solver's choice depends on rounding
)


def equal_attention_rankings(
    relevance: Floats, bias: Floats, *, num_rankings: int, quality: float = 0.0, values: Floats | None = None
) -> NDArray[np.int64]:
    """Successive rankings (ranking, position) of one query, each the one that leaves the least unfairness behind it.

    With attention w (the position biases) and relevance r, both scaled to sum to 1, and A, R their totals over the rankings before, the
    next ranking minimises

    sum over items i of abs(A_i + w_rank(i) - R_i - r_i)    subject to    DCG >= quality * ideal DCG,

    an integer program, unless sorting by the attention owed, R_i + r_i - A_i, the solution without the constraint, has enough DCG.

    Parameters
    ----------
    relevance
        Relevance of each item (item,), 0 or more; where all have 0, all are equally relevant.
    bias
        Position bias (position,), one per item.
    num_rankings
        Length of the sequence.
    quality
        The least DCG of every ranking, as a share of the highest.
    values
        Gain of each item (item,) in DCG; None: its relevance.

    >>> equal_attention_rankings(np.array([3.0, 2.0]), np.array([1.0, 0.5]), num_rankings=5).tolist()  # 3 / 5 of the attention
    [[0, 1], [0, 1], [1, 0], [0, 1], [0, 1]]
    """
    n = len(relevance)
    if relevance.shape != bias.shape or not (relevance >= 0).all() or not 0 <= quality <= 1 or num_rankings < 1:
        raise RankPolicyError(
            "relevance must be 0 or more and have the shape of bias, quality be between 0 and 1 and num_rankings at least 1; got "
            f"{relevance!r:.80}, {bias!r:.80}, {quality} and {num_rankings}."
        )
    # Items in one order, so that the solution does not depend on that in which they come.
    items = np.argsort(-relevance, kind="stable")
    merits = relevance[items] / relevance.sum() if relevance.sum() > 0 else np.full(n, 1 / n)
    attention = bias / bias.sum()
    gains = (relevance if values is None else values)[items]
    dcg = np.outer(gains, bias)  # (item, position)
    least = quality * float(np.sort(gains)[::-1] @ np.sort(bias)[::-1])
    owed, rankings = np.zeros(n), []
    for _ in range(num_rankings):
        owed += merits
        # Without a constraint the best assignment of two lists of numbers is that of both sorted.
        positions = np.argsort(np.argsort(-owed, kind="stable"))
        if dcg[np.arange(n), positions].sum() < least - _ROUNDING:
            positions = _best_assignment(owed[:, None] - attention, dcg, least)
        owed -= attention[positions]
        rankings.append(items[np.argsort(positions)])
    return np.stack(rankings)


def _best_assignment(gaps: Floats, dcg: Floats, least: float) -> NDArray[np.int64]:
    """The position of each item (item,) with the least sum of absolute gaps that has at least some DCG; of equal ones the most even."""
    optimize = require("scipy.optimize", "Equity of attention")
    n = len(gaps)
    once = np.concatenate([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
    solution = optimize.milp(
        (abs(gaps) + _EVENNESS * gaps**2).ravel(),
        integrality=np.ones(n * n),
        bounds=optimize.Bounds(0, 1),
        constraints=[
            optimize.LinearConstraint(once, 1, 1),
            optimize.LinearConstraint(dcg.ravel(), least - _ROUNDING, np.inf),
        ],
        options={"mip_rel_gap": 0.0},
    )
    if solution.x is None:
        raise RankPolicyError(f"the integer program of equity of attention was not solved: {solution.message}")
    return np.asarray(solution.x.reshape(n, n).argmax(1))
