"""An upper confidence bound of a mean that holds for any number of observations, by betting."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.declarations.arguments import as_float64, checked_kinds
from rankpolicy.types import RankPolicyError

Floats = NDArray[np.float64]
# In units of 1 / highest, and the shares of the capital on them: half on the highest stake, which is best for numbers that are mostly 0.
_STAKES = 0.5 ** np.arange(12)
_SHARES = 1 / (np.arange(12) + 1) / (np.arange(12) + 2)
_HALVINGS = 50


@checked_kinds
def upper_mean(values: ArrayLike, *, highest: float, level: float = 0.95) -> float:
    """An upper bound of the mean of independent numbers between 0 and ``highest``: at least the mean with probability ``level``.

    A gambler who stakes ν on the mean being below m has, after the numbers x_i, his first capital times Π (1 + ν (m - x_i)); if the mean
    is m or more, he cannot expect to gain. With the capital spread over stakes 1, 1/2, 1/4, ... times 1 / highest, and added up,

    P(capital at the true mean >= 1 / (1 - level)) <= 1 - level    (Markov),

    and the bound is the m at which the capital is 1 / (1 - level) (Waudby-Smith & Ramdas 2024). It holds for every n and every
    distribution, and is short where numbers vary little: about sqrt(2 var log(1 / (1 - level)) / n) above their mean.

    Parameters
    ----------
    values
        The numbers, one dimension. Those above ``highest`` count as ``highest``: then the bound is of the mean of min(x, highest).
    highest
        The highest possible number, chosen without looking at ``values``.
    level
        The probability, between 0 and 1.

    >>> round(upper_mean(np.zeros(100), highest=1.0), 4), round(upper_mean(np.zeros(1000), highest=1.0), 4)
    (0.0368, 0.0036)
    """
    observed = as_float64("values", values)
    if observed.ndim != 1 or not len(observed) or not (observed >= 0).all():
        raise RankPolicyError(f"values must be one or more numbers, 0 or more, in one dimension; got {values!r:.80}.")
    if not (0 < highest < math.inf and 0 < level < 1):
        raise RankPolicyError(f"highest must be above 0 and level between 0 and 1; got {highest} and {level}.")
    clipped = np.minimum(observed, highest)
    low, high, wanted = float(clipped.mean()), highest, -math.log1p(-level)
    if log_capital(high - clipped, largest_loss=highest) < wanted:
        return highest
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if log_capital(middle - clipped, largest_loss=highest) >= wanted else (middle, high)
    return high


def log_capital(gains: Floats, *, largest_loss: float) -> float:
    """Logarithm of what a capital of 1 becomes by bets that gain these numbers per stake of 1 and lose at most ``largest_loss``.

    >>> round(math.exp(log_capital(np.array([0.5, -0.5]), largest_loss=1.0)), 4)  # half of it becomes 1.5 * 0.5, a sixth 1.25 * 0.75, ...
    0.7861
    """
    gains, counts = np.unique(gains / largest_loss, return_counts=True)  # a disparity is 0 at most queries
    with np.errstate(divide="ignore"):
        logs = np.log1p(np.outer(_STAKES, gains)) @ counts
    return float(np.logaddexp.reduce(logs + np.log(_SHARES)))
