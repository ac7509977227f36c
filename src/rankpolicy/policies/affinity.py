"""The affinity policy of BanditRank: place items one by one, by affinity among those left, and now and then by chance."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rankpolicy.metrics.ranked import rank_by_score
from rankpolicy.policies.plackett_luce import (
    add_gumbel_noise,
    check_scores,
    log_remaining_weights,
    ranked_log_weights,
)
from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, eq=False)
class Affinity:
    """P(ranking) = prod_{p <= M} (ε / (n - p + 1) + (1 - ε) a_{r(p)} / sum of the a not placed before p) (Gampa & Fujita 2019, eq. 3).

    Affinities are a = sigmoid(score). A query of n items gets a list of M = min(n, ``max_positions``) of them. With ``epsilon`` ε = 0 this
    is Plackett-Luce with the weights a; the mixture with chance is drawn anew at every position.

    >>> scores, mask = torch.tensor([[0.6, 0.4, 0.2]]).logit(), torch.ones(1, 3, dtype=torch.bool)
    >>> policy = Affinity(scores, mask, epsilon=0.1)
    >>> policy.log_prob(torch.tensor([[0]])).exp()  # 0.1 / 3 + 0.9 * 0.6 / 1.2
    tensor([0.4833])
    >>> policy.mode()
    tensor([[0, 1, 2]])
    """

    scores: Tensor  # (query, item)
    mask: Tensor  # (query, item) bool
    epsilon: float | Tensor = 0.1  # share of choices made by chance; a tensor (query,) has one for each query
    max_positions: int | None = None

    def __post_init__(self) -> None:
        check_scores(self.scores, self.mask)
        check_exploration(self.epsilon, self.max_positions)

    def sample(
        self, num_samples: int, *, cutoff: int | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Lists (sample, query, position) of the first M items, or of the first ``cutoff`` if these are fewer; padded items come last."""
        # One race and one shuffle serve all positions: what is left of either has not been looked at yet.
        race = add_gumbel_noise(logsigmoid(self.scores), num_samples=num_samples, generator=generator)
        shuffle = torch.rand(race.shape, dtype=race.dtype, device=race.device, generator=generator)
        depth = self._depth(cutoff)
        explores = torch.rand((*race.shape[:2], depth), dtype=race.dtype, device=race.device, generator=generator)
        explores = explores < self._epsilon_of_query(race)
        # Padded items stay behind all others, placed items behind these.
        open_to_choice = self.mask.to(race.dtype).expand(race.shape).clone()
        placed = []
        for position in range(depth):
            keys = torch.where(explores[..., position, None], shuffle, race)
            best = torch.where(open_to_choice == open_to_choice.amax(-1, keepdim=True), keys, -torch.inf)
            placed.append(best.argmax(-1, keepdim=True))
            open_to_choice.scatter_(-1, placed[-1], -1.0)
        return torch.cat(placed, -1)

    def log_prob(self, rankings: Tensor, *, cutoff: int | None = None) -> Tensor:
        """Log probability (..., query) of the first M positions of rankings, or of the first ``cutoff``; a prefix counts as a top."""
        log_choice, _, _, is_item = self.choices(rankings[..., : self._depth(cutoff)])
        return torch.where(is_item, log_choice, 0.0).sum(-1)

    def mode(self) -> Tensor:
        """All items by falling affinity (query, position): the list at ranking time."""
        return rank_by_score(self.scores, self.mask)

    def choices(self, placed: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of each choice (..., query, position): its log probability, that of choosing so by affinity, log of the affinities left,
        and whether it is of a real item."""
        log_affinities = logsigmoid(self.scores)
        chosen, is_item = ranked_log_weights(log_affinities, self.mask, placed)
        log_left = log_remaining_weights(log_affinities, self.mask, placed)
        epsilon = self._epsilon_of_query(chosen)
        num_left = self.mask.sum(-1, keepdim=True) - torch.arange(placed.shape[-1], device=placed.device)
        by_affinity = torch.log1p(-epsilon) + chosen - log_left
        by_chance = epsilon.log() - num_left.clamp(min=1).to(chosen.dtype).log()
        return torch.logaddexp(by_chance, by_affinity), by_affinity, log_left, is_item

    def _epsilon_of_query(self, like: Tensor) -> Tensor:
        """(query, 1) or (1, 1)"""
        return torch.as_tensor(self.epsilon, dtype=like.dtype, device=like.device).reshape(-1, 1)

    def _depth(self, cutoff: int | None) -> int:
        return min(limit for limit in (self.scores.shape[-1], self.max_positions, cutoff) if limit is not None)


def check_exploration(epsilon: float | Tensor, max_positions: int | None) -> None:
    shares = torch.as_tensor(epsilon)
    if not ((shares >= 0) & (shares <= 1)).all():
        raise RankPolicyError(f"epsilon is a share of choices, from 0 to 1; got {epsilon}.")
    if max_positions is not None and max_positions < 1:
        raise RankPolicyError(f"max_positions must be at least 1, or None for whole lists; got {max_positions}.")
