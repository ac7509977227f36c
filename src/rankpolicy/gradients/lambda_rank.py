"""LambdaRank's direction for any metric, as what policy gradients are compared with."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.types import RankPolicyError, Reward

_RANKED_ITEMS_AT_ONCE = 1 << 24


def lambda_rank(scores: Tensor, labels: Tensor, mask: Tensor, *, reward: Reward, sigma: float = 1.0) -> Tensor:
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
    >>> mask = torch.ones(1, 2, dtype=torch.bool)
    >>> lambda_rank(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), mask, reward=parse_metric("ndcg"))  # (1 - 0.6309) / 2
    tensor([[ 0.1845, -0.1845]])
    """
    if scores.ndim != 2 or labels.shape != scores.shape or mask.shape != scores.shape:
        raise RankPolicyError(
            "scores, labels and mask must have one shape, (query, item); "
            f"got {tuple(scores.shape)}, {tuple(labels.shape)} and {tuple(mask.shape)}. For one query add an axis: scores[None]."
        )
    gradient = torch.zeros_like(scores)
    for query, size in enumerate(mask.sum(-1).tolist()):
        items = mask[query].nonzero()[:, 0]
        gradient[query, items] = _of_query(scores[query, items], labels[query, items], reward, sigma, size)
    return gradient


def _of_query(scores: Tensor, labels: Tensor, reward: Reward, sigma: float, size: int) -> Tensor:
    """The direction (item,) of one query without padding."""
    order = scores.argsort(descending=True, stable=True)
    position = torch.empty_like(order).scatter(0, order, torch.arange(size, device=order.device))
    better, worse = (labels[:, None] > labels[None, :]).nonzero().unbind(-1)
    gradient = torch.zeros_like(scores)
    mask = torch.ones(1, size, dtype=torch.bool, device=scores.device)
    value = reward(order[None], labels[None], mask)
    step = max(1, _RANKED_ITEMS_AT_ONCE // max(1, size))
    for first in range(0, len(better), step):
        i, j = better[first : first + step], worse[first : first + step]
        pairs = torch.arange(len(i), device=order.device)
        swapped = order.repeat(len(i), 1)
        swapped[pairs, position[i]], swapped[pairs, position[j]] = j, i
        change = (reward(swapped[:, None], labels[None], mask)[:, 0] - value).abs().nan_to_num(nan=0.0)
        pull = (sigma * change * torch.sigmoid(sigma * (scores[j] - scores[i]))).to(scores.dtype)
        gradient = gradient.index_add(0, i, pull).index_add(0, j, -pull)
    return gradient
