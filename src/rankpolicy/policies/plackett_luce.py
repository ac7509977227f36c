"""The Plackett-Luce policy: place items one by one, each with probability proportional to exp(score) among those left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rankpolicy.kernels import has_numba
from rankpolicy.metrics.ranked import discounts, rank_by_score
from rankpolicy.policies.race import FINE, race_exposure
from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, eq=False)
class PlackettLuce:
    """P(ranking) = prod_p exp(s_{r(p)}) / sum_{j >= p} exp(s_{r(j)}) (Plackett 1975; Luce 1959).

    Scores are log weights: weights 3, 2, 1 rank the items 0, 1, 2 with probability 3/6 * 2/3 = 1/3.

    >>> scores, mask = torch.tensor([[3.0, 2.0, 1.0]]).log(), torch.ones(1, 3, dtype=torch.bool)
    >>> policy = PlackettLuce(scores, mask)
    >>> policy.log_prob(torch.tensor([[0, 1, 2]])).exp()
    tensor([0.3333])
    >>> policy.mode()
    tensor([[0, 1, 2]])
    """

    scores: Tensor  # (query, item)
    mask: Tensor  # (query, item) bool

    def __post_init__(self) -> None:
        check_scores(self.scores, self.mask)

    def sample(
        self, num_samples: int, *, cutoff: int | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Rankings (sample, query, position), drawn by sorting scores with Gumbel noise; only the first ``cutoff`` positions if given."""
        noisy_scores = add_gumbel_noise(self.scores, num_samples=num_samples, generator=generator)
        return rank_by_score(noisy_scores, self.mask)[..., :cutoff]

    def log_prob(self, rankings: Tensor, *, cutoff: int | None = None) -> Tensor:
        """Log probability (..., query) of rankings or of their first ``cutoff`` positions; a prefix counts as the top of a list."""
        placed = rankings[..., :cutoff]
        log_weights, is_item = ranked_log_weights(self.scores, self.mask, placed)
        steps = log_weights - log_remaining_weights(self.scores, self.mask, placed)
        return torch.where(is_item, steps, 0.0).sum(-1)

    def mode(self) -> Tensor:
        """The most probable ranking (query, position): items by falling score."""
        return rank_by_score(self.scores, self.mask)

    def exposure(self, rank_weights: Tensor | None = None, *, cutoff: int | None = None) -> Tensor:
        """E[weight of the item's rank] (query, item), exact; by default the weight of rank r is 1 / log2(1 + r), the position bias of DCG.

        >>> PlackettLuce(torch.zeros(1, 2), torch.ones(1, 2, dtype=torch.bool)).exposure()  # (1 + 0.6309) / 2 each
        tensor([[0.8155, 0.8155]])
        """
        num_positions = self.scores.shape[-1]
        if rank_weights is None:
            rank_weights = discounts(num_positions, like=self.scores.detach().double())
        if len(rank_weights) < num_positions:
            rank_weights = torch.nn.functional.pad(rank_weights, (0, num_positions - len(rank_weights)))
        if cutoff is not None:
            rank_weights = rank_weights.clone()
            rank_weights[cutoff:] = 0
        if self.scores.device.type == "cpu" and has_numba():
            from rankpolicy.kernels.plackett_luce.race import race

            scores = self.scores.detach().numpy()
            return torch.from_numpy(
                race(scores, self.mask.numpy(), rank_weights.numpy(), np.zeros_like(scores), quadrature=FINE)[0]
            )
        return race_exposure(self.scores, self.mask, rank_weights.to(self.scores))


def add_gumbel_noise(scores: Tensor, *, num_samples: int, generator: torch.Generator | None) -> Tensor:
    """Scores with standard Gumbel noise (sample, query, item), whose order is a draw of the policy."""
    # In float64: a float32 exponential can be 0, and its logarithm then ties items at infinity.
    shape = (num_samples, *scores.shape)
    exponential = torch.empty(shape, dtype=torch.float64, device=scores.device).exponential_(generator=generator)
    return scores.detach().double() - exponential.log()


def ranked_log_weights(scores: Tensor, mask: Tensor, rankings: Tensor) -> tuple[Tensor, Tensor]:
    """Score of the item at each position, and whether it is a real item: both (..., query, position)."""
    shape = (*rankings.shape[:-1], scores.shape[-1])
    return _filled(scores, mask).expand(shape).gather(-1, rankings), mask.expand(shape).gather(-1, rankings)


def log_remaining_weights(scores: Tensor, mask: Tensor, rankings: Tensor) -> Tensor:
    """log Z_p (..., query, position): log of the summed exp(score) of all items not placed before position p."""
    log_weights, _ = ranked_log_weights(scores, mask, rankings)
    suffix = log_weights.flip(-1).logcumsumexp(-1).flip(-1)
    if rankings.shape[-1] == scores.shape[-1]:
        return suffix
    filled = _filled(scores, mask).expand(*rankings.shape[:-1], scores.shape[-1])
    unplaced = filled.scatter(-1, rankings, torch.finfo(scores.dtype).min / 4).logsumexp(-1, keepdim=True)
    return torch.logaddexp(suffix, unplaced)


def check_scores(scores: Tensor, mask: Tensor) -> None:
    if scores.ndim != 2 or mask.shape != scores.shape:
        raise RankPolicyError(
            f"scores and mask must both be (query, item); got {tuple(scores.shape)} and {tuple(mask.shape)}. "
            "For one query add an axis: scores[None]."
        )
    if not scores.is_floating_point() or mask.dtype != torch.bool:
        raise RankPolicyError(f"scores must be floating point and mask bool; got {scores.dtype} and {mask.dtype}.")


def _filled(scores: Tensor, mask: Tensor) -> Tensor:
    # Finite, not -inf: the backward pass of logcumsumexp turns -inf into NaN.
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min / 4)
