"""Claims that compare two methods on the same units: queries, splits, seeds or logs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankpolicy.optional import require
from reproductions.statements import Claim

LEVEL = 0.95
LEVEL_STEP = 0.01  # of a whole fall: a step that rises by less is level
EQUIVALENT = 0.01  # of a metric: what is nearer than this is as good


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
    array = array[~np.isnan(array)]
    quantile = require("scipy.special", "A paired interval").stdtrit(len(array) - 1, (1 + level) / 2)
    half = float(quantile * array.std(ddof=1) / np.sqrt(len(array)))
    mean = float(array.mean())
    return PairedInterval(mean, mean - half, mean + half, len(array))


def better(
    claim: str, ours: ArrayLike, theirs: ArrayLike, *, paper: str, unit: str, published: float | None = None
) -> Claim:
    """That ``ours`` is higher: the 95 % interval of the paired differences lies above zero.

    Parameters
    ----------
    claim
        What is claimed.
    ours, theirs
        One value per unit, in the same order; units that either cannot measure are NaN and left out.
    paper
        The words or the number of the paper.
    unit
        What the values are of, in the plural: "queries", "seeds".
    published
        The difference of the paper's own numbers, where they are known.

    >>> print(better("A beats B", [3, 4, 5], [1, 2, 3.1], paper="3 against 1", unit="seeds").ours)
    4.0000 against 2.0333, difference +1.9667 [+1.8232, +2.1101] over 3 seeds
    """
    return _compared(claim, ours, theirs, paper, unit, above=0.0, published=published)


def not_worse(claim: str, ours: ArrayLike, theirs: ArrayLike, *, paper: str, unit: str) -> Claim:
    """That ``ours`` is less than EQUIVALENT behind. For a claim of "better" see :func:`better`."""
    return _compared(claim, ours, theirs, paper, unit, above=-EQUIVALENT)


def _compared(claim: str, ours: ArrayLike, theirs: ArrayLike, paper: str, unit: str, **claimed: float | None) -> Claim:
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    measured = ~(np.isnan(a) | np.isnan(b))
    a, b = a[measured], b[measured]
    found = t_interval(a - b)
    return Claim(
        claim=claim,
        paper=paper,
        ours=f"{a.mean():.4f} against {b.mean():.4f}, difference {found} over {found.num_pairs} {unit}",
        low=found.low,
        high=found.high,
        **claimed,
    )


def falling(claim: str, curve: Sequence[ArrayLike], *, paper: str, ours: str) -> Claim:
    """That a curve falls up to its noise: surely from its first point to its last, and no step surely rises by 1 % of that.

    The interval is that of the whole fall, or that of a step that rises by more than chance (at 5 % over the number of steps).

    Parameters
    ----------
    claim
        What is claimed.
    curve
        One array per point, with one value per unit: seeds or queries.
    paper
        The words of the paper.
    ours
        What was measured, in words.
    """
    points = [np.asarray(values, float) for values in curve]
    level = 1 - (1 - LEVEL) / (len(points) - 1)
    steps = [t_interval(a - b, level=level) for a, b in pairwise(points)]
    least = min(steps, key=lambda step: step.high)
    whole = t_interval(points[0] - points[-1])
    found = least if least.high < -LEVEL_STEP * abs(whole.mean) else whole
    return Claim(claim=claim, paper=paper, ours=ours, low=found.low, high=found.high, above=0.0)
