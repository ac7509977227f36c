"""Claims that compare two methods on the same units: queries, splits, seeds or logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankpolicy.optional import require
from reproductions.target import Claim

LEVEL = 0.95


class PairedInterval(NamedTuple):
    """The mean of paired differences with its interval."""

    mean: float
    low: float
    high: float
    num_pairs: int

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"


def t_interval(values: ArrayLike, *, level: float = LEVEL) -> PairedInterval:
    """mean ± t sd / sqrt(n), t the quantile of Student's distribution with n - 1 degrees of freedom.

    >>> print(t_interval([1.0, 2.0, 3.0]))  # 2 ± 4.3027 / sqrt(3)
    +2.0000 [-0.4841, +4.4841]
    """
    array = np.asarray(values, float)
    quantile = require("scipy.special", "A paired interval").stdtrit(len(array) - 1, (1 + level) / 2)
    half = float(quantile * array.std(ddof=1) / np.sqrt(len(array)))
    mean = float(array.mean())
    return PairedInterval(mean, mean - half, mean + half, len(array))


def better(claim: str, ours: ArrayLike, theirs: ArrayLike, *, paper: str, unit: str) -> Claim:
    """That ``ours`` is higher: the 95 % interval of the paired differences lies above zero.

    Parameters
    ----------
    claim
        The statement.
    ours, theirs
        One value per unit, in the same order; units that either cannot measure are NaN and left out.
    paper
        The words or the number of the paper.
    unit
        What the values are of, in the plural: "queries", "seeds".

    >>> print(better("A beats B", [3, 4, 5], [1, 2, 3.1], paper="3 against 1", unit="seeds").ours)
    4.0000 against 2.0333, difference +1.9667 [+1.8232, +2.1101] over 3 seeds
    """
    return _compared(claim, ours, theirs, paper, unit, lambda found: found.low > 0)


def not_worse(claim: str, ours: ArrayLike, theirs: ArrayLike, *, paper: str, unit: str) -> Claim:
    """That ``ours`` is at least as high: the mean difference is not negative. For a claim of "better" see :func:`better`."""
    return _compared(claim, ours, theirs, paper, unit, lambda found: found.mean >= 0)


def _compared(
    claim: str,
    ours: ArrayLike,
    theirs: ArrayLike,
    paper: str,
    unit: str,
    holds: Callable[[PairedInterval], bool],
) -> Claim:
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    measured = ~(np.isnan(a) | np.isnan(b))
    a, b = a[measured], b[measured]
    found = t_interval(a - b)
    return Claim(
        claim=claim,
        paper=paper,
        ours=f"{a.mean():.4f} against {b.mean():.4f}, difference {found} over {found.num_pairs} {unit}",
        holds=holds(found),
    )
