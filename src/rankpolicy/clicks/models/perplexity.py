"""Perplexity of click marks, by rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankpolicy.clicks.log.click_log import ClickLog
from rankpolicy.display import short_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class Perplexity:
    """Perplexity of click marks: 1 is a perfect forecast, 2 that of a fair coin.

    Parameters
    ----------
    overall
        Mean over ranks.
    by_rank
        One number per rank; NaN where nothing was shown.
    """

    overall: float
    by_rank: NDArray[np.float64]  # (position,)

    __repr__ = short_repr


def perplexity_of(probabilities: NDArray[np.float64], log: ClickLog) -> Perplexity:
    """2^(-mean over the items shown at a rank of log2 P(their click mark)) (Dupret & Piwowarski 2008).

    >>> from rankpolicy.clicks.log.click_log import log_from_lists
    >>> log = log_from_lists(["a", "a"], [["x", "y"], ["x", "y"]], [[1, 0], [0, 0]])
    >>> perplexity_of(np.array([[0.5, 0.5], [0.5, 0.5]]), log).by_rank
    array([2., 2.])
    """
    with np.errstate(divide="ignore"):
        bits = -np.log2(np.where(log.clicks, probabilities, 1 - probabilities))
    is_shown = ~np.isnan(probabilities)
    total = np.where(is_shown, bits, 0.0).T @ log.counts
    shown = is_shown.T @ log.counts
    with np.errstate(invalid="ignore"):
        by_rank = 2.0 ** (total / np.where(shown > 0, shown, np.nan))
    return Perplexity(overall=float(np.nanmean(by_rank)), by_rank=by_rank)
