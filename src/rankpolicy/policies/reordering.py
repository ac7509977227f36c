"""What policies that reorder the top of a base ranking at random share: traffic from which position bias can be measured."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from rankpolicy.arrays import (
    Array,
    Generator,
    alike,
    arange,
    as_like,
    clip,
    gather,
    masked_fill,
    namespace,
    scatter,
    to_numpy,
)
from rankpolicy.display import frozen_value
from rankpolicy.metrics.ranked import full_rank_weights, rank_by_score, ranks_of
from rankpolicy.policies.plackett_luce import set_scores
from rankpolicy.types import RankPolicyError


@frozen_value(kw_only=True)
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

    rankings: Array
    propensities: Array
    list_propensities: Array
    swaps: Array
    lengths: Array

    def log_columns(self) -> dict[str, NDArray[np.generic]]:
        """Columns of a log, one row per shown item; with a column ``clicked`` added they are a click log of the layout "rows".

        ``session`` and ``query`` are the number of the query in the batch, ``item`` its item index, ``position`` counts from 0;
        ``propensity`` is of the item at its position, ``list_propensity`` of the whole list, ``swap_first`` and ``swap_second`` are the
        positions that could be swapped.
        """
        shape = self.rankings.shape
        positions, queries = np.arange(shape[1]), np.arange(shape[0])[:, None]
        is_shown = positions < to_numpy(self.lengths)[:, None]
        swaps = to_numpy(self.swaps)
        columns = {
            "session": queries,
            "query": queries,
            "item": to_numpy(self.rankings),
            "position": positions,
            "propensity": to_numpy(self.propensities),
            "list_propensity": to_numpy(self.list_propensities)[:, None],
            "swap_first": swaps[:, :1],
            "swap_second": swaps[:, 1:],
        }
        return {name: np.broadcast_to(values, shape)[is_shown] for name, values in columns.items()}


@frozen_value()
class Reordering(ABC):
    """The base ranking, items by descending score, whose first ``depth`` items change places at random."""

    scores: Array  # (query, item)
    mask: Array  # (query, item) bool
    depth: int = 10

    def __post_init__(self) -> None:
        set_scores(self)
        if self.depth < 1:
            raise RankPolicyError(f"depth must be at least 1; got {self.depth}.")

    @abstractmethod
    def _drawn(self, num_samples: int, generator: Generator | None) -> tuple[Array, Array]:
        """Base positions in the order in which they are shown (sample, query, position), and the swaps (sample, query, 2)."""

    @abstractmethod
    def _placement(self) -> Array:
        """P(the item at base position b is shown at position p) (query, b, p), for the first ``depth`` positions."""

    @abstractmethod
    def log_prob(self, rankings: Array, *, cutoff: int | None = None) -> Array:
        """Log probability (..., query) of rankings; -inf for those that the policy never shows.

        Parameters
        ----------
        rankings
            Whole rankings or their first positions (..., query, position).
        cutoff
            How many positions count; by default all that ``rankings`` holds.
        """

    def sample(self, num_samples: int, *, cutoff: int | None = None, generator: Generator | None = None) -> Array:
        """Rankings (sample, query, position) drawn from the policy.

        Parameters
        ----------
        num_samples
            Rankings per query.
        cutoff
            How many positions to return; by default all.
        generator
            Source of randomness: a ``torch.Generator`` for tensors, a ``numpy.random.Generator`` for arrays; by default an unseeded one.
        """
        return self._in_order(self._drawn(num_samples, generator)[0])[..., :cutoff]

    def show(self, *, cutoff: int | None = None, generator: Generator | None = None) -> RandomisedLists:
        """Draw one list per query, with what a log has to keep.

        Parameters
        ----------
        cutoff
            How many positions are shown; by default all. At least ``depth``, or items that were moved out of sight would be missing.
        generator
            Source of randomness: a ``torch.Generator`` for tensors, a ``numpy.random.Generator`` for arrays; by default an unseeded one.
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
            list_propensities=namespace(rankings).exp(self.log_prob(rankings)),
            swaps=swaps[0],
            lengths=clip(self.mask.sum(-1), high=rankings.shape[-1]),
        )

    def mode(self) -> Array:
        """The base ranking (query, position); no other is more probable."""
        return rank_by_score(self.scores, self.mask)

    def exposure(self, rank_weights: Array | None = None, *, cutoff: int | None = None) -> Array:
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
        of_positions = namespace(weights).tile(weights, (len(self.scores), 1))
        width = placement.shape[-1]
        of_positions[:, :width] = placement @ weights[:width]
        exposure = scatter(of_positions, self.mode(), of_positions)
        return as_like(masked_fill(exposure, ~self.mask, 0.0), self.scores)

    def propensities(self, rankings: Array) -> Array:
        """P(the item is shown at this position) of each item of rankings (..., query, position), whatever the other items; 1 for padding.

        Parameters
        ----------
        rankings
            Whole rankings or their first positions (..., query, position).
        """
        _, rankings = alike(self.scores, rankings)
        base, placement, xp = self._base_positions(rankings), self._placement(), namespace(rankings)
        width = placement.shape[-1]
        positions = arange(rankings.shape[-1], like=rankings)
        queries = arange(len(self.mask), like=rankings)[:, None]
        inside = placement[queries, clip(base, high=width - 1), clip(positions, high=width - 1)]
        chances = xp.where((base < width) & (positions < width), inside, as_like(base == positions, inside))
        return as_like(xp.where(self._is_item(rankings), chances, 1.0), self.scores)

    def _tops(self) -> Array:
        """How many items change places in each query (query,)."""
        return clip(self.mask.sum(-1), high=self.depth)

    def _in_order(self, order: Array) -> Array:
        return gather(self.mode(), order)

    def _base_positions(self, rankings: Array) -> Array:
        """Where the items of rankings stand in the base ranking (..., query, position), from 0."""
        return gather(ranks_of(self.mode()) - 1, rankings)

    def _is_item(self, rankings: Array) -> Array:
        return arange(rankings.shape[-1], like=rankings) < self.mask.sum(-1, keepdims=True)
