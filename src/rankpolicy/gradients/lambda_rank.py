"""LambdaRank's direction for any metric, as what policy gradients are compared with."""

from __future__ import annotations

from rankpolicy.arrays import Array, alike, arange, as_like, masked_fill, namespace, put, scatter_add, sigmoid
from rankpolicy.types import RankPolicyError, Reward

_RANKED_ITEMS_AT_ONCE = 1 << 24


def lambda_rank(scores: Array, labels: Array, mask: Array, *, reward: Reward, sigma: float = 1.0) -> Array:
    """LambdaRank's direction of ascent in score space (query, item) (Burges 2010, section 4).

    λ_i = sum over pairs (i, j), label_i > label_j, of sigma |ΔR_ij| / (1 + exp(sigma (s_i - s_j))), minus the same where label_j > label_i;
    ΔR_ij is what the reward of the sorted list changes by when i and j trade places. It is not the gradient of any known function of the
    reward: the sorted list is left as it is by small changes of scores.

    Parameters
    ----------
    scores, labels, mask
        Padded batch (query, item); the mask is True at real items.
    reward
        The metric, such as ``parse_metric("ndcg@10")``.
    sigma
        Steepness of the logistic function.

    >>> from rankpolicy.metrics import parse_metric
    >>> import numpy as np
    >>> mask, labels = np.ones((1, 2), bool), np.array([[1.0, 0.0]])
    >>> lambda_rank(np.zeros((1, 2)), labels, mask, reward=parse_metric("ndcg")).round(4)  # (1 - 0.6309) / 2
    array([[ 0.1845, -0.1845]])
    """
    scores, labels, mask = alike(scores, labels, mask)
    if scores.ndim != 2 or labels.shape != scores.shape or mask.shape != scores.shape:
        raise RankPolicyError(
            "scores, labels and mask must have one shape, (query, item); "
            f"got {tuple(scores.shape)}, {tuple(labels.shape)} and {tuple(mask.shape)}. For one query add an axis: scores[None]."
        )
    xp = namespace(scores)
    gradient = xp.zeros_like(scores)
    for query, size in enumerate(mask.sum(-1).tolist()):
        (items,) = xp.nonzero(mask[query])
        gradient[query, items] = _of_query(scores[query, items], labels[query, items], reward, sigma, size)
    return gradient


def _of_query(scores: Array, labels: Array, reward: Reward, sigma: float, size: int) -> Array:
    """The direction (item,) of one query without padding."""
    xp = namespace(scores)
    order = xp.argsort(scores, descending=True, stable=True)
    position = xp.zeros_like(order)
    put(position, order, arange(size, like=order))
    better, worse = xp.nonzero(labels[:, None] > labels[None, :])
    gradient = xp.zeros_like(scores)
    mask = xp.ones_like(order[None], dtype=xp.bool)
    value = reward(order[None], labels[None], mask)
    step = max(1, _RANKED_ITEMS_AT_ONCE // max(1, size))
    for first in range(0, len(better), step):
        i, j = better[first : first + step], worse[first : first + step]
        pairs = arange(len(i), like=order)
        swapped = xp.tile(order, (len(i), 1))
        swapped[pairs, position[i]], swapped[pairs, position[j]] = j, i
        change = abs(reward(swapped[:, None], labels[None], mask)[:, 0] - value)
        change = masked_fill(change, change != change, 0.0)  # queries that are left out
        pull = as_like(sigma * change * sigmoid(sigma * (scores[j] - scores[i])), scores)
        gradient = scatter_add(scatter_add(gradient[None], i, pull[None]), j, -pull[None])[0]
    return gradient
