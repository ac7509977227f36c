"""PL-Rank-3: sampled gradients of additive rewards that learn about every item from every sample (Oosterhuis 2022).

With PR_k = Σ_{x >= k} θ_x ρ_{r(x)}, DR_k = Σ_{x <= k} θ_x / Z_x, RI_k = Σ_{x <= k} PR_x / Z_x and m(i) = min(rank(i), K),

    dU/ds_i = E[ 1[rank(i) < K] PR_{rank(i)+1} + exp(s_i) (ρ_i DR_{m(i)} - RI_{m(i)}) ]

K the cutoff of the rank weights θ and Z_x the summed exp(score) of the items not placed before rank x.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.gradients.controls import check_control
from rankpolicy.gradients.estimate import GradientEstimate
from rankpolicy.gradients.exact import additive_forms
from rankpolicy.kernels import has_numba
from rankpolicy.policies.plackett_luce import PlackettLuce, check_scores, log_remaining_weights, ranked_log_weights
from rankpolicy.types import Reward


def pl_rank(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    reward: Reward,
    num_samples: int = 32,
    control: str = "none",
    generator: torch.Generator | None = None,
) -> GradientEstimate:
    """Estimate dU/dscores of an additive reward from ``num_samples`` rankings a query; it has no use for a control variate.

    The same generator state gives the same result, whatever the number of threads.
    """
    check_scores(scores, mask)
    check_control("none", num_samples)
    weights, values = (torch.stack(parts) for parts in zip(*additive_forms(reward, labels, mask), strict=True))
    counts = weights.any(0).nonzero()
    cutoff = int(counts.max()) + 1 if len(counts) else 1
    if scores.device.type != "cpu" or not has_numba():
        rankings = PlackettLuce(scores, mask).sample(num_samples, cutoff=cutoff, generator=generator)
        return pl_rank_of_rankings(scores, labels, mask, rankings=rankings, reward=reward)

    from rankpolicy.kernels.plackett_luce.pl_rank import pl_rank_queries

    gradient, utility, _ = pl_rank_queries(
        scores.detach().numpy(),
        mask.numpy(),
        weights[:, :cutoff].double().numpy(),
        values.double().numpy(),
        num_samples=num_samples,
        seed=int(torch.randint(2**62, (), generator=generator)),
    )
    return GradientEstimate(torch.from_numpy(gradient).to(scores.dtype), torch.from_numpy(utility).to(scores.dtype))


def pl_rank_of_rankings(
    scores: Tensor,
    labels: Tensor,
    mask: Tensor,
    *,
    rankings: Tensor,  # (sample, query, position), all positions that the reward looks at
    reward: Reward,
) -> GradientEstimate:
    """The reference: the estimate that these sampled rankings give."""
    scores = scores.detach()
    shape = (*rankings.shape[:-1], scores.shape[-1])
    _, is_item = ranked_log_weights(scores, mask, rankings)
    log_remaining = log_remaining_weights(scores, mask, rankings)
    gradient, utility = torch.zeros_like(scores), scores.new_zeros(len(scores))
    for rank_weights, item_values in additive_forms(reward, labels, mask):
        values = item_values.to(scores.dtype)
        weights = torch.where(is_item, rank_weights[: rankings.shape[-1]].to(scores.dtype), 0.0)
        gained = weights * values.expand(shape).gather(-1, rankings)
        placed_from = gained.flip(-1).cumsum(-1).flip(-1)  # PR
        placed_after = torch.zeros(shape, dtype=scores.dtype, device=scores.device).scatter(
            -1, rankings, placed_from - gained
        )
        direct = _summed_shares(scores, rankings, log_remaining, weights)
        indirect = _summed_shares(scores, rankings, log_remaining, placed_from)
        gradient += torch.where(mask, placed_after + values * direct - indirect, 0.0).mean(0)
        utility += gained.sum(-1).mean(0)
    return GradientEstimate(gradient, utility)


def _summed_shares(scores: Tensor, rankings: Tensor, log_remaining: Tensor, amounts: Tensor) -> Tensor:
    """Σ_{x <= m(i)} amounts_x exp(s_i) / Z_x (sample, query, item)."""
    shape = (*rankings.shape[:-1], scores.shape[-1])
    total = torch.zeros(shape, dtype=scores.dtype, device=scores.device)
    # In log space: an item's share exp(s_i) / Z_x is at most 1, but 1 / Z_x alone may overflow.
    for sign in (1.0, -1.0):
        counts = sign * amounts > 0
        log_amounts = torch.where(counts, sign * amounts, 1.0).log()
        log_sums = (
            (log_amounts - log_remaining).masked_fill(~counts, torch.finfo(scores.dtype).min / 4).logcumsumexp(-1)
        )
        # An item that was not placed takes part in every step.
        up_to_rank = log_sums[..., -1:].expand(shape).scatter(-1, rankings, log_sums)
        total += sign * (scores + up_to_rank).exp()
    return total
