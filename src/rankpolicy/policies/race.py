"""Expected rank weights of a Plackett-Luce policy without sampling, by integrating over time in the race that the policy is.

Item i arrives after an exponential time of rate λ_i = exp(s_i), and the order of arrival is the ranking. So

    exposure_i = E[θ_{rank(i)}] = ∫ λ_i e^{-λ_i t} Σ_c θ_{c+1} P[N_{-i}(t) = c] dt

with N_{-i}(t) the number of other items that have arrived by t: a sum of independent coins p_j = 1 - e^{-λ_j t}. In x = log t the trapezoid
rule converges like e^{-π²/h}; all items share its nodes, and dynamic programs from both ends of the item list leave each item out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from rankpolicy.kernels import HAS_NUMBA, on_gpu


class Quadrature(NamedTuple):
    """Trapezoid nodes x = log t = m * step.

    They start ``before`` ahead of the first arrival, x = -log Σ λ_i; the part before that is summed in closed form, with an error of
    e^{-2 before}. They end ``after`` past the last arrival. Nodes with no item due within 2 * before, or within before + log(items), are
    left out.
    """

    step: float
    before: float
    after: float


FINE = Quadrature(step=0.2, before=12.0, after=3.8)  # 1e-10 in float64
COARSE = Quadrature(step=0.5, before=5.0, after=2.8)  # for training: errors of the gradient are in gradients/exact.py


def exact_exposure(scores: Tensor, mask: Tensor, rank_weights: Tensor, *, quadrature: Quadrature = FINE) -> Tensor:
    """E[θ_{rank(i)}] (query, item) by the kernel of the device, or by ``race_exposure`` where there is none.

    Autograd follows on a GPU only.
    """
    if scores.device.type == "cpu" and HAS_NUMBA:
        from rankpolicy.kernels.plackett_luce.race import exposure

        arrays = (scores.detach().numpy(), mask.numpy(), rank_weights.numpy())
        return torch.from_numpy(exposure(*arrays, quadrature=quadrature))
    if on_gpu(scores) and not scores.requires_grad:
        from rankpolicy.kernels.triton.race import race as race_on_gpu

        race = race_on_gpu(scores, mask, rank_weights, scores, quadrature=quadrature, up_to="exposure")
        return race.exposure.to(scores.dtype)
    return race_exposure(scores, mask, rank_weights.to(scores), quadrature=quadrature)


def race_exposure(scores: Tensor, mask: Tensor, rank_weights: Tensor, *, quadrature: Quadrature = FINE) -> Tensor:
    """E[θ_{rank(i)}] (query, item) for rank weights θ (position,); differentiable. The readable reference of kernels/plackett_luce/race.py.

    >>> scores = torch.tensor([[3.0, 2.0, 1.0]], dtype=torch.float64).log()
    >>> race_exposure(scores, torch.ones(1, 3, dtype=torch.bool), torch.tensor([1.0, 0.0, 0.0]).double())  # P(first)
    tensor([[0.5000, 0.3333, 0.1667]], dtype=torch.float64)
    """
    num_items, cutoff = scores.shape[-1], int(rank_weights.nonzero().max()) + 1 if rank_weights.any() else 1
    weights = rank_weights[:cutoff].to(scores.dtype)
    shifted = scores - scores.masked_fill(~mask, -torch.inf).amax(-1, keepdim=True).detach()
    shifted = shifted.masked_fill(~mask, -1e4 + torch.finfo(scores.dtype).min / 4)
    nodes = _nodes(shifted.detach(), mask, quadrature)
    # The clamps keep λt finite; an item past them has arrived, or never will, for certain.
    log_rates_t = (shifted[:, None, :] + nodes[:, None]).clamp(-1e4, 30.0)
    rates_t = log_rates_t.exp()  # (query, node, item)
    arrived = -torch.expm1(-rates_t)
    arriving = torch.where(mask[:, None, :], quadrature.step * rates_t * torch.exp(-rates_t), 0.0)

    # before[i][..., c]: probability that c of the items before i have arrived.
    before = [torch.zeros(*arrived.shape[:2], cutoff, dtype=scores.dtype, device=scores.device)]
    before[0][..., 0] = 1.0
    for i in range(num_items - 1):
        p = arrived[..., i, None]
        before.append((1 - p) * before[i] + p * _shifted_up(before[i]))
    # after[..., c]: expected weight of an item that c earlier ones precede, over the arrivals of the items after i.
    after = weights.expand_as(before[0])
    exposure: list[Tensor] = []
    for i in reversed(range(num_items)):
        exposure.append((arriving[..., i] * (before[i] * after).sum(-1)).sum(-1))
        p = arrived[..., i, None]
        after = (1 - p) * after + p * _shifted_down(after)
    # Before the first node at most one item has arrived: there the integrand is λ_i t θ_1, a geometric series over nodes.
    early = quadrature.step * (shifted + nodes[0]).exp() / math.expm1(quadrature.step) * weights[0]
    return torch.stack(exposure[::-1], -1) + torch.where(mask, early, 0.0)


def _nodes(shifted: Tensor, mask: Tensor, quadrature: Quadrature) -> Tensor:
    """Nodes (node,) at which some item of some query may arrive."""
    lowest = shifted[mask].min().item() if mask.any() else 0.0
    first = (-shifted.logsumexp(-1).max().item() - quadrature.before) / quadrature.step
    last = (quadrature.after - lowest) / quadrature.step
    numbers = torch.arange(math.floor(first), math.ceil(last) + 1, dtype=shifted.dtype, device=shifted.device)
    nodes = quadrature.step * numbers
    due = (-shifted[mask]).sort().values  # where each item's arrival centres
    next_due = due[torch.searchsorted(due, nodes - quadrature.after).clamp(max=len(due) - 1)]
    # Among n items of equal scores the first arrives log n before its own centre: the nodes around it count as well.
    log_items = math.log(max(int(mask.sum(-1).max()), 1))
    return nodes[next_due <= nodes + max(2 * quadrature.before, quadrature.before + log_items + quadrature.step)]


def _shifted_up(counts: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(counts[..., :1]), counts[..., :-1]], -1)


def _shifted_down(counts: Tensor) -> Tensor:
    return torch.cat([counts[..., 1:], torch.zeros_like(counts[..., :1])], -1)
