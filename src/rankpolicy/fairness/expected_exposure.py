"""Expected exposure: exposure compared with that of the ideal policy, which ranks better grades first and shuffles items of one grade."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.fairness.disparity import check_exposure


def target_exposure(labels: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
    """The ideal exposure (query, item): items of one label share equally the positions of that label in the best ranking.

    Parameters
    ----------
    labels
        Grades of items (query, item).
    mask
        True at real items (query, item).
    bias
        The position bias (position,) that the exposure was computed with; 0 past its end.

    >>> target_exposure(torch.tensor([[0.0, 1.0, 1.0]]), torch.ones(1, 3, dtype=torch.bool), torch.tensor([1.0, 0.6, 0.5]))
    tensor([[0.5000, 0.8000, 0.8000]])
    """
    num_items = labels.shape[-1]
    padded = labels.to(bias.dtype).masked_fill(~mask, -torch.inf)
    ordered = padded.sort(-1, descending=True).values
    # bias summed over the positions before each; the positions of a label run from `first` to `past`.
    summed = torch.nn.functional.pad(bias[:num_items].cumsum(0), (1, 0))
    ascending = -ordered.contiguous()
    first = torch.searchsorted(ascending, -padded.contiguous(), side="left")
    past = torch.searchsorted(ascending, -padded.contiguous(), side="right")
    last = len(summed) - 1
    shared = (summed[past.clamp(max=last)] - summed[first.clamp(max=last)]) / (past - first)
    return shared.masked_fill(~mask, 0.0)


def ee_d(exposure: Tensor, mask: Tensor) -> Tensor:
    """Expected exposure disparity (Diaz et al. 2020): sum_i e_i² (query,); lower is more equal exposure for all.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    mask
        True at real items (query, item).

    >>> ee_d(torch.tensor([[1.0, 0.5]]), torch.ones(1, 2, dtype=torch.bool))
    tensor([1.2500])
    """
    check_exposure(exposure, exposure, mask)
    return exposure.masked_fill(~mask, 0.0).square().sum(-1)


def ee_r(exposure: Tensor, labels: Tensor, mask: Tensor, *, bias: Tensor) -> Tensor:
    """Expected exposure relevance (Diaz et al. 2020): sum_i e_i e*_i with e* the target exposure (query,); higher is more useful.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    labels
        Grades of items (query, item).
    mask
        True at real items (query, item).
    bias
        The position bias (position,) that the exposure was computed with; 0 past its end.

    >>> bias = torch.tensor([1.0, 0.5])
    >>> ee_r(torch.tensor([[1.0, 0.5]]), torch.tensor([[0.0, 2.0]]), torch.ones(1, 2, dtype=torch.bool), bias=bias)  # 0.5 + 0.5
    tensor([1.])
    """
    check_exposure(exposure, labels, mask)
    return (exposure.masked_fill(~mask, 0.0) * target_exposure(labels, mask, bias.to(exposure.dtype))).sum(-1)


def ee_l(exposure: Tensor, labels: Tensor, mask: Tensor, *, bias: Tensor) -> Tensor:
    """Expected exposure loss (Diaz et al. 2020): sum_i (e_i - e*_i)² = EE-D - 2 EE-R + sum_i e*_i² (query,); 0 is ideal.

    Parameters
    ----------
    exposure
        Expected position bias of each item (query, item), from any source: exact, sampled, or of a mixture.
    labels
        Grades of items (query, item).
    mask
        True at real items (query, item).
    bias
        The position bias (position,) that the exposure was computed with; 0 past its end.

    >>> bias = torch.tensor([1.0, 0.5])
    >>> ee_l(torch.tensor([[1.0, 0.5]]), torch.tensor([[0.0, 2.0]]), torch.ones(1, 2, dtype=torch.bool), bias=bias)
    tensor([0.5000])
    """
    check_exposure(exposure, labels, mask)
    difference = exposure - target_exposure(labels, mask, bias.to(exposure.dtype))
    return difference.masked_fill(~mask, 0.0).square().sum(-1)
