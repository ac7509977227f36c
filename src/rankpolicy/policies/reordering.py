"""What policies that reorder the top of a base ranking at random share: traffic from which position bias can be measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.display import short_repr
from rankpolicy.metrics.ranked import full_rank_weights, rank_by_score, ranks_of
from rankpolicy.policies.plackett_luce import check_scores
from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RandomisedLists:
    """One list per query, drawn from a reordering policy, with what a log has to keep for later estimates.

    Parameters
    ----------
    rankings
        The lists to show (query, position): item indices, padded items last.
    propensities
        P(the item is shown at its position) (query, position); 1 past the end of a list.
    list_propensities
        P(the list) (query,).
    swaps
        The two positions (query, 2), counted from 0, that were swapped with probability 1/2, whether they were or not; -1 where there were
        none. They are the argument ``swaps`` of ``rp.estimate_position_bias``.
    lengths
        Number of items in each list (query,).
    """

    rankings: Tensor
    propensities: Tensor
    list_propensities: Tensor
    swaps: Tensor
    lengths: Tensor

    __repr__ = short_repr

    def log_columns(self) -> dict[str, NDArray[np.generic]]:
        """Columns of a log, one row per shown item; with a column ``clicked`` added they are a click log of the layout "rows".

        ``session`` and ``query`` are the number of the query in the batch, ``item`` its item index, ``position`` counts from 0;
        ``propensity`` is of the item at its position, ``list_propensity`` of the whole list, ``swap_first`` and ``swap_second`` are the
        positions that could be swapped.
        """
        num_queries, num_positions = self.rankings.shape
        positions = torch.arange(num_positions, device=self.rankings.device).expand(num_queries, -1)
        is_shown = (positions < self.lengths[:, None]).cpu()
        queries = torch.arange(num_queries)[:, None].expand(-1, num_positions)
        columns = {
            "session": queries,
            "query": queries,
            "item": self.rankings,
            "position": positions,
            "propensity": self.propensities,
            "list_propensity": self.list_propensities[:, None].expand(-1, num_positions),
            "swap_first": self.swaps[:, :1].expand(-1, num_positions),
            "swap_second": self.swaps[:, 1:].expand(-1, num_positions),
        }
        return {name: values.cpu()[is_shown].numpy() for name, values in columns.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Reordering(ABC):
    """The base ranking, items by descending score, whose first ``depth`` items change places at random."""

    scores: Tensor  # (query, item)
    mask: Tensor  # (query, item) bool
    depth: int = 10

    __repr__ = short_repr

    def __post_init__(self) -> None:
        check_scores(self.scores, self.mask)
        if self.depth < 1:
            raise RankPolicyError(f"depth must be at least 1; got {self.depth}.")

    @abstractmethod
    def _drawn(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Base positions in the order in which they are shown (sample, query, position), and the swaps (sample, query, 2)."""

    @abstractmethod
    def _placement(self) -> Tensor:
        """P(the item at base position b is shown at position p) (query, b, p), for the first ``depth`` positions."""

    @abstractmethod
    def log_prob(self, rankings: Tensor, *, cutoff: int | None = None) -> Tensor:
        """Log probability (..., query) of rankings; -inf for those that the policy never shows.

        Parameters
        ----------
        rankings
            Whole rankings or their first positions (..., query, position).
        cutoff
            How many positions count; by default all that ``rankings`` holds.
        """

    def sample(
        self, num_samples: int, *, cutoff: int | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Rankings (sample, query, position) drawn from the policy.

        Parameters
        ----------
        num_samples
            Rankings per query.
        cutoff
            How many positions to return; by default all.
        generator
            Source of randomness; by default torch's own.
        """
        return self._in_order(self._drawn(num_samples, generator)[0])[..., :cutoff]

    def show(self, *, cutoff: int | None = None, generator: torch.Generator | None = None) -> RandomisedLists:
        """Draw one list per query, with what a log has to keep.

        Parameters
        ----------
        cutoff
            How many positions are shown; by default all. At least ``depth``, or items that were moved out of sight would be missing.
        generator
            Source of randomness; by default torch's own.
        """
        if cutoff is not None and cutoff < min(self.depth, self.mask.shape[-1]):
            raise RankPolicyError(
                f"cutoff must be at least depth, {self.depth}, so that all items that change places are shown; got {cutoff}."
            )
        order, swaps = self._drawn(1, generator)
        rankings = self._in_order(order)[0, :, :cutoff]
        return RandomisedLists(
            rankings=rankings,
            propensities=self.propensities(rankings),
            list_propensities=self.log_prob(rankings).exp(),
            swaps=swaps[0],
            lengths=self.mask.sum(-1).clamp(max=rankings.shape[-1]),
        )

    def mode(self) -> Tensor:
        """The base ranking (query, position); no other is more probable."""
        return rank_by_score(self.scores, self.mask)

    def exposure(self, rank_weights: Tensor | None = None, *, cutoff: int | None = None) -> Tensor:
        """Expected weight of each item's rank (query, item), exact.

        Parameters
        ----------
        rank_weights
            Weight of each rank (position,), 0 past its end; by default 1 / log2(1 + rank), the position bias of DCG.
        cutoff
            Ranks past this weigh 0; by default none do.
        """
        weights = full_rank_weights(rank_weights, like=self.scores, cutoff=cutoff)
        placement = self._placement()
        of_positions = weights.repeat(len(self.scores), 1)
        width = placement.shape[-1]
        of_positions[:, :width] = placement @ weights[:width]
        exposure = torch.zeros_like(of_positions).scatter(-1, self.mode(), of_positions)
        return exposure.masked_fill(~self.mask, 0.0).to(self.scores.dtype)

    def propensities(self, rankings: Tensor) -> Tensor:
        """P(the item is shown at this position) of each item of rankings (..., query, position), whatever the other items; 1 for padding.

        Parameters
        ----------
        rankings
            Whole rankings or their first positions (..., query, position).
        """
        base = self._base_positions(rankings)
        placement = self._placement()
        width = placement.shape[-1]
        positions = torch.arange(rankings.shape[-1], device=rankings.device).expand(rankings.shape)
        queries = torch.arange(len(self.mask), device=rankings.device)[:, None].expand(rankings.shape)
        inside = placement[queries, base.clamp(max=width - 1), positions.clamp(max=width - 1)]
        chances = torch.where((base < width) & (positions < width), inside, (base == positions).to(inside.dtype))
        return torch.where(self._is_item(rankings), chances, 1.0).to(self.scores.dtype)

    def _tops(self) -> Tensor:
        """How many items change places in each query (query,)."""
        return self.mask.sum(-1).clamp(max=self.depth)

    def _in_order(self, order: Tensor) -> Tensor:
        return self.mode().expand(order.shape).gather(-1, order)

    def _base_positions(self, rankings: Tensor) -> Tensor:
        """Where the items of rankings stand in the base ranking (..., query, position), from 0."""
        positions = ranks_of(self.mode()) - 1
        return positions.expand(*rankings.shape[:-1], -1).gather(-1, rankings)

    def _is_item(self, rankings: Tensor) -> Tensor:
        return torch.arange(rankings.shape[-1], device=rankings.device) < self.mask.sum(-1, keepdim=True)
