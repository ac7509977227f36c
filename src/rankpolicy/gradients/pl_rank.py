"""PL-Rank-3: sampled gradients of additive rewards that learn about every item from every sample (Oosterhuis 2022).

With PR_k = Σ_{x >= k} θ_x ρ_{r(x)}, DR_k = Σ_{x <= k} θ_x / Z_x, RI_k = Σ_{x <= k} PR_x / Z_x and m(i) = min(rank(i), K),

    dU/ds_i = E[ 1[rank(i) < K] PR_{rank(i)+1} + exp(s_i) (ρ_i DR_{m(i)} - RI_{m(i)}) ]

K the cutoff of the rank weights θ and Z_x the summed exp(score) of the items not placed before rank x.
"""

from __future__ import annotations

from rankpolicy.arrays import (
    Array,
    Generator,
    alike,
    as_double,
    as_like,
    detached,
    gather,
    namespace,
    on_host,
    random_seed,
    scatter,
    to_numpy,
    zeros,
)
from rankpolicy.gradients.estimate import GradientEstimate, check_control, draw_seed_on, num_ranks
from rankpolicy.kernels import HAS_NUMBA, on_gpu
from rankpolicy.policies.choices import log_remaining_weights, ranked_log_weights, summed_shares
from rankpolicy.policies.plackett_luce import PlackettLuce, checked_scores
from rankpolicy.types import Reward


def pl_rank(
    scores: Array,
    labels: Array,
    mask: Array,
    *,
    reward: Reward,
    num_samples: int = 32,
    control: str = "none",
    generator: Generator | None = None,
) -> GradientEstimate:
    """Estimate dU/dscores of an additive reward from sampled rankings.

    Equal generator states give equal results, whatever the number of threads.

    Parameters
    ----------
    scores, labels, mask
        Padded batch (query, item); the mask is True at real items.
    reward
        A weighted sum of DCG, NDCG, precision, recall, RBP and average rank.
    num_samples
        Rankings drawn per query. More samples, less noise; 10 to 50 is usual.
    control
        Not used: this estimator needs no control variate.
    generator
        Source of randomness: a ``torch.Generator`` for tensors, a ``numpy.random.Generator`` for arrays; by default an unseeded one.
    """
    scores, mask = checked_scores(scores, mask)
    check_control("none", num_samples)
    _, labels = alike(scores, labels)
    xp = namespace(scores)
    weights, values = (xp.stack(terms) for terms in zip(*reward.additive_forms(labels, mask), strict=True))
    cutoff = max(1, num_ranks(weights, of=(reward.name, "additive")))
    if on_gpu(scores) and _fits(scores, cutoff):
        from rankpolicy.kernels.triton.pl_rank import pl_rank as on_device

        sampled = on_device(
            scores,
            mask,
            rank_weights=weights[:, :cutoff],
            item_values=values,
            num_samples=num_samples,
            seed=draw_seed_on(scores.device, generator),
        )
        return GradientEstimate(as_like(sampled.gradient, scores), as_like(sampled.utility, scores))
    if not on_host(scores) or not HAS_NUMBA:
        rankings = PlackettLuce(scores, mask).sample(num_samples, cutoff=cutoff, generator=generator)
        return pl_rank_of_rankings(scores, labels, mask, rankings=rankings, reward=reward)

    from rankpolicy.kernels.plackett_luce.pl_rank import pl_rank_queries

    result = pl_rank_queries(
        to_numpy(scores),
        to_numpy(mask),
        rank_weights=to_numpy(as_double(weights[:, :cutoff])),
        item_values=to_numpy(as_double(values)),
        num_samples=num_samples,
        seed=random_seed(generator, like=scores),
    )
    return GradientEstimate(as_like(result.gradient, scores), as_like(result.utility, scores))


def _fits(scores: Array, cutoff: int) -> bool:
    """Whether the GPU kernel can sort this many items and positions."""
    from rankpolicy.kernels.triton.reinforce import MOST_ITEMS, MOST_POSITIONS

    return 0 < scores.shape[-1] <= MOST_ITEMS and cutoff <= MOST_POSITIONS


def pl_rank_of_rankings(
    scores: Array,
    labels: Array,
    mask: Array,
    *,
    rankings: Array,
    reward: Reward,
) -> GradientEstimate:
    """The estimate that these rankings, sampled from the Plackett-Luce policy of the scores, give.

    Parameters
    ----------
    scores, labels, mask
        Padded batch (query, item).
    rankings
        (sample, query, position), with all positions that the reward looks at.
    reward
        An additive reward.
    """
    scores, xp = detached(scores), namespace(scores)
    _, is_item = ranked_log_weights(scores, mask, rankings)
    log_remaining = log_remaining_weights(scores, mask, rankings)
    gradient, utility = xp.zeros_like(scores), xp.zeros_like(scores[:, 0])
    for rank_weights, item_values in reward.additive_forms(labels, mask):
        values = as_like(item_values, scores)
        weights = xp.where(is_item, as_like(rank_weights[: rankings.shape[-1]], scores), 0.0)
        gained = weights * gather(values, rankings)
        placed_from = xp.flip(xp.flip(gained, axis=-1).cumsum(-1), axis=-1)  # PR
        placed_after = scatter(zeros((scores.shape[-1],), like=scores), rankings, placed_from - gained)
        direct = summed_shares(scores, rankings, log_remaining, weights)
        indirect = summed_shares(scores, rankings, log_remaining, placed_from)
        gradient += xp.where(mask, placed_after + values * direct - indirect, 0.0).mean(0)
        utility += gained.sum(-1).mean(0)
    return GradientEstimate(gradient, utility)
