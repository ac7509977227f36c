"""The KL-UCB index as a function of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.arguments import as_float64, checked_kinds
from rankpolicy.types import RankPolicyError


@checked_kinds
def kl_ucb(means: ArrayLike, divergences: ArrayLike) -> NDArray[np.float64]:
    """The largest q in [mean, 1] with kl(mean, q) <= divergence, for each pair (Garivier & Cappé 2011).

    kl(p, q) = p log(p / q) + (1 - p) log((1 - p) / (1 - q)).

    Parameters
    ----------
    means
        Click rates from 0 to 1, of any shape.
    divergences
        Bounds of the divergence, 0 or more; a bandit's is (log t + 3 log log t) / observations. Broadcast against ``means``.

    >>> kl_ucb([0.0, 0.5, 1.0], np.log(2))  # 1 - e^{-log 2}; kl(1/2, q) = log 2 at 4 q (1 - q) = 1/4, q = (2 + sqrt 3) / 4; 1
    array([0.5       , 0.9330127, 1.       ])
    """
    from rankpolicy.kernels.bandits.counts import fill_kl_ucb

    given = as_float64("means", means), as_float64("divergences", divergences)
    try:
        shaped = np.broadcast_arrays(*given)
    except ValueError:
        raise RankPolicyError(
            f"means and divergences must have shapes that fit together; got {given[0].shape} and {given[1].shape}."
        ) from None
    flat_means, flat_divergences = (np.ascontiguousarray(values).ravel() for values in shaped)
    if not ((flat_means >= 0) & (flat_means <= 1)).all() or not (flat_divergences >= 0).all():
        raise RankPolicyError("means must be from 0 to 1 and divergences at least 0; got others, or NaN.")
    indices = np.empty(len(flat_means))
    fill_kl_ucb(flat_means, flat_divergences, indices)
    return indices.reshape(shaped[0].shape)
