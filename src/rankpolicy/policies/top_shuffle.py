"""The top of a ranking in random order (RandTopN of Wang, Bendersky, Metzler & Najork 2016)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rankpolicy.policies.reordering import Reordering


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TopShuffle(Reordering):
    """The first ``depth`` items of the base ranking in random order, every order equally likely; the others stay where they are.

    Items are equally relevant at all of these positions on average, so clicks on them give the position bias by the method "randomised" of
    ``rp.estimate_position_bias``. ``show()`` draws a list and what a log has to keep.

    Parameters
    ----------
    scores
        Floating-point scores (query, item); the base ranking is by descending score. For a given order use minus the position.
    mask
        True where ``scores`` holds a real item (query, item).
    depth
        How many items change places. More positions are measured with a larger depth, and users see worse lists.

    >>> policy = TopShuffle(torch.tensor([[3.0, 2.0, 1.0]]), torch.ones(1, 3, dtype=torch.bool), depth=2)
    >>> policy.log_prob(torch.tensor([[[1, 0, 2]], [[2, 1, 0]]])).exp()  # 1 / 2!; item 2 never comes first
    tensor([[0.5000],
            [0.0000]])
    >>> policy.propensities(torch.tensor([[1, 0, 2]]))
    tensor([[0.5000, 0.5000, 1.0000]])
    """

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
        base, tops = self._base_positions(placed), self._tops()
        positions = torch.arange(placed.shape[-1], device=placed.device)
        stays = torch.where(positions < tops[:, None], base < tops[:, None], base == positions)
        is_possible = (stays | ~self._is_item(placed)).all(-1)
        num_left = (tops - placed.shape[-1]).clamp(min=0)
        log_share = torch.lgamma(num_left.to(self.scores.dtype) + 1) - torch.lgamma(tops.to(self.scores.dtype) + 1)
        return torch.where(is_possible, log_share, -torch.inf)

    def _drawn(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        shape, device = (num_samples, *self.scores.shape), self.scores.device
        positions = torch.arange(self.scores.shape[-1], dtype=torch.float64, device=device)
        keys = torch.rand(shape, dtype=torch.float64, device=device, generator=generator)
        order = torch.where(positions < self._tops()[:, None], keys, 1 + positions).argsort(-1)
        return order, torch.full((*shape[:2], 2), -1, device=device)

    def _placement(self) -> Tensor:
        width = min(self.depth, self.scores.shape[-1])
        is_top = torch.arange(width, device=self.scores.device) < self._tops()[:, None]
        shuffled = (is_top[:, :, None] & is_top[:, None, :]) / self._tops().clamp(min=1)[:, None, None]
        still = torch.eye(width, dtype=torch.float64, device=self.scores.device)
        return torch.where(is_top[:, :, None], shuffled.double(), still)
