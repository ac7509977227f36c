"""Ranked group fairness of FA*IR: every prefix of a list holds as many protected items as fair coin tosses would (Zehlike et al. 2017)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rankpolicy.optional import require

Floats = NDArray[np.float64]
_HALVINGS = 40


@lru_cache(maxsize=1024)
def minimum_protected(num_positions: int, *, proportion: float, alpha: float) -> NDArray[np.int64]:
    """The least number of protected items in the first 1, 2, ... positions that a binomial test does not reject.

    m(i) is the lowest m with P(Binomial(i, proportion) <= m) > alpha.

    Parameters
    ----------
    num_positions
        Length of the list.
    proportion
        Probability with which a fair list would have a protected item at a position, between 0 and 1.
    alpha
        Significance of the test of each prefix; ``corrected_alpha`` gives that for a significance of all of them.

    >>> minimum_protected(10, proportion=0.5, alpha=0.1).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    """
    if alpha <= 0:
        return np.zeros(num_positions, np.int64)
    binom = require("scipy.stats", "Numbers of protected items").binom
    positions, counts = np.arange(1, num_positions + 1), np.arange(num_positions + 1)
    # The quantile function of scipy rounds where P(... <= m) is alpha exactly.
    is_rejected = binom.cdf(counts, positions[:, None], proportion) <= alpha
    minima: NDArray[np.int64] = is_rejected.sum(1)
    minima.flags.writeable = False
    return minima


def rejection_probability(minima: NDArray[np.int64], *, proportion: float) -> float:
    """Probability that a fair list has a prefix with fewer protected items than its minimum.

    Parameters
    ----------
    minima
        Least number of protected items in each prefix (position,).
    proportion
        Probability of a protected item at a position.

    >>> rejection_probability(np.array([0, 1, 1]), proportion=0.5)  # the first two are not protected
    0.25
    """
    counts = np.ones(1)  # probability of each number of protected items, of lists that passed so far
    for minimum in minima:
        counts = np.append(counts * (1 - proportion), 0.0) + np.append(0.0, counts * proportion)
        counts[:minimum] = 0.0
    return 1.0 - float(counts.sum())


@lru_cache(maxsize=1024)
def corrected_alpha(num_positions: int, *, proportion: float, alpha: float) -> float:
    """The highest significance of single prefixes at which a fair list is rejected with probability ``alpha`` at most.

    Parameters
    ----------
    num_positions
        Length of the list.
    proportion
        Probability of a protected item at a position.
    alpha
        Significance of the test of all prefixes together.

    >>> alpha = corrected_alpha(10, proportion=0.5, alpha=0.1)
    >>> minima = minimum_protected(10, proportion=0.5, alpha=alpha)
    >>> minima.tolist(), round(rejection_probability(minima, proportion=0.5), 4)
    ([0, 0, 0, 0, 1, 1, 1, 2, 2, 3], 0.0752)
    """
    low, high = 0.0, alpha
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        minima = minimum_protected.__wrapped__(num_positions, proportion=proportion, alpha=middle)
        low, high = (middle, high) if rejection_probability(minima, proportion=proportion) <= alpha else (low, middle)
    return low


def with_protected_prefixes(
    scores: Floats, is_protected: NDArray[np.bool_], minima: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The ranking (position,) that takes the best item at each position, or the best protected one where a minimum asks for it.

    Where no protected item is left, others follow.

    Parameters
    ----------
    scores
        Score of each item (item,).
    is_protected
        Whether an item is protected (item,).
    minima
        Least number of protected items in the first positions (position,); later positions have none.

    >>> with_protected_prefixes(np.array([4.0, 3.0, 2.0, 1.0]), np.array([False, False, False, True]), np.array([0, 1, 1]))
    array([0, 3, 1, 2])
    """
    order = np.argsort(-scores, kind="stable")
    waiting = [list(order[is_protected[order] == group][::-1]) for group in (False, True)]  # best last
    rank = np.argsort(order, kind="stable")
    ranking, num_protected = [], 0
    for position in range(len(scores)):
        others, protected = waiting
        is_asked = position < len(minima) and num_protected < minima[position]
        takes = int(bool(protected) and (is_asked or not others or rank[protected[-1]] < rank[others[-1]]))
        ranking.append(waiting[takes].pop())
        num_protected += takes
    return np.array(ranking)
