"""Two positions of a ranking swapped with probability 1/2 (Joachims, Swaminathan & Schnabel 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rankpolicy.policies.reordering import Reordering
from rankpolicy.types import RankPolicyError, unknown_name

SWAPPED = ("any", "first", "adjacent")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RandomSwaps(Reordering):
    """The base ranking with two of its first ``depth`` positions, drawn at random for each list, swapped with probability 1/2.

    Both positions show the same items equally often, so clicks on them give the position bias by the method "swaps" of
    ``rp.estimate_position_bias``, which needs the positions drawn: ``show()`` draws a list and what a log has to keep. Lists change less
    than with TopShuffle.

    Parameters
    ----------
    scores
        Floating-point scores (query, item); the base ranking is by descending score. For a given order use minus the position.
    mask
        True where ``scores`` holds a real item (query, item).
    depth
        Positions that may be swapped, at least 2.
    pairs
        Which pairs of positions are drawn from, all equally likely: "any" two, the "first" and another one (Joachims et al. 2017), or
        "adjacent" ones (Wang et al. 2018), which change lists least.

    >>> policy = RandomSwaps(torch.tensor([[3.0, 2.0, 1.0]]), torch.ones(1, 3, dtype=torch.bool), pairs="first")
    >>> policy.log_prob(torch.tensor([[[0, 1, 2]], [[1, 0, 2]], [[2, 1, 0]], [[0, 2, 1]]])).exp()[:, 0]
    tensor([0.5000, 0.2500, 0.2500, 0.0000])
    >>> policy.propensities(torch.tensor([[1, 0, 2]]))  # item 2 stays in three of four lists
    tensor([[0.2500, 0.2500, 0.7500]])
    """

    pairs: str = "any"

    def __post_init__(self) -> None:
        super(RandomSwaps, self).__post_init__()
        if self.depth < 2:
            raise RankPolicyError(f"depth must be at least 2 to swap positions; got {self.depth}.")
        if self.pairs not in SWAPPED:
            raise RankPolicyError(unknown_name("pairs", self.pairs, SWAPPED))

    def log_prob(self, rankings: Tensor, *, cutoff: int | None = None) -> Tensor:
        """Log probability (..., query) of rankings; -inf for those that the policy never shows.

        Parameters
        ----------
        rankings
            Whole rankings or their first positions (..., query, position).
        cutoff
            How many positions count; by default all that ``rankings`` holds.
        """
        placed = rankings[..., :cutoff]
        base, ignored = self._base_positions(placed), ~self._is_item(placed)
        chances = self._chances()
        positions = torch.arange(placed.shape[-1], device=placed.device)
        total = ((base == positions) | ignored).all(-1) * (1 - chances.sum(-1) / 2)
        for (first, second), chance in zip(self._pairs().tolist(), chances.T, strict=True):
            swapped = positions.clone()
            swapped[positions == first], swapped[positions == second] = second, first
            total = total + ((base == swapped) | ignored).all(-1) * chance / 2
        return total.log().to(self.scores.dtype)

    def _drawn(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        num_queries, num_items = self.scores.shape
        device = self.scores.device
        order = torch.arange(num_items, device=device).repeat(num_samples, num_queries, 1)
        swaps = torch.full((num_samples, num_queries, 2), -1, device=device)
        chances = self._chances()
        has_pairs = chances.sum(-1) > 0
        if not has_pairs.any():
            return order, swaps
        drawn = torch.multinomial(chances[has_pairs], num_samples, replacement=True, generator=generator).T
        chosen = self._pairs()[drawn]  # (sample, query, 2)
        coin = torch.rand(drawn.shape, dtype=torch.float64, device=device, generator=generator) < 0.5
        swaps[:, has_pairs] = chosen
        shown_at = torch.where(coin[..., None], chosen.flip(-1), chosen)
        order[:, has_pairs] = order[:, has_pairs].scatter(-1, chosen, shown_at)
        return order, swaps

    def _placement(self) -> Tensor:
        chances, width = self._chances() / 2, min(self.depth, self.scores.shape[-1])
        first, second = self._pairs().T
        placement = torch.zeros(len(self.scores), width, width, dtype=torch.float64, device=self.scores.device)
        placement[:, first, second] = placement[:, second, first] = chances
        return placement + torch.diag_embed(1 - placement.sum(-1))

    def _pairs(self) -> Tensor:
        """The pairs of positions (pair, 2) that lists of ``depth`` items are drawn from."""
        width = min(self.depth, self.scores.shape[-1])
        first, second = torch.triu_indices(width, width, 1, device=self.scores.device)
        is_drawn = {"any": first >= 0, "first": first == 0, "adjacent": second == first + 1}[self.pairs]
        return torch.stack([first[is_drawn], second[is_drawn]], -1)

    def _chances(self) -> Tensor:
        """P(pair) of each query (query, pair): equal for pairs within its list, all 0 where it has fewer than two items."""
        is_inside = (self._pairs()[:, 1] < self._tops()[:, None]).double()
        return is_inside / is_inside.sum(-1, keepdim=True).clamp(min=1)
