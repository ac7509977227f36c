"""What metrics share: checked input, labels in ranking order, ranks and discounts, and the value of queries without relevant items."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rankpolicy import arrays
from rankpolicy.arrays import Array
from rankpolicy.types import Conventions, RankPolicyError


class JudgedItems(NamedTuple):
    """The items of queries and their labels."""

    labels: Array  # labels as floats (query, item), 0 at padded items
    mask: Array  # True where an item is real (query, item)

    def gains(self, conventions: Conventions) -> Array:
        """Gain of each item (query, item); 0 at padded items."""
        return arrays.namespace(self.labels).exp2(self.labels) - 1 if conventions.gain == "exp2" else self.labels

    def relevant(self, conventions: Conventions) -> Array:
        """1 where an item is relevant, 0 elsewhere (query, item), in the dtype of the labels."""
        return arrays.as_like((self.labels >= conventions.relevant_from) & self.mask, self.labels)


class Ranked(NamedTuple):
    """Rankings of judged items, cut to the positions that count."""

    rankings: Array  # items in ranked order (..., query, position)
    items: JudgedItems  # the items of each query

    def placed(self, values: Array) -> Array:
        """Values (query, item) of the items in ranking order (..., query, position)."""
        return arrays.gather(values, self.rankings)

    def ranks(self) -> Array:
        """1, 2, ... (position,)."""
        return rank_numbers(self.rankings.shape[-1], like=self.items.labels)

    def discounts(self) -> Array:
        """1 / log2(1 + rank) (position,)."""
        return discounts(self.rankings.shape[-1], like=self.items.labels)


def judged_items(labels: Array, mask: Array, *, cutoff: int | None = None) -> JudgedItems:
    """Labels and mask, checked, with a check of the cutoff that will be applied to their rankings."""
    labels, mask = arrays.alike(labels, mask)
    if labels.ndim != 2 or labels.shape != mask.shape:
        raise RankPolicyError(
            f"labels and mask must have one shape, (query, item); got {tuple(labels.shape)} and {tuple(mask.shape)}. "
            "For one query add an axis: labels[None], mask[None]."
        )
    if cutoff is not None and (isinstance(cutoff, bool) or not isinstance(cutoff, int) or cutoff < 1):
        raise RankPolicyError(
            f"cutoff must be a whole number, 1 or more; got {cutoff!r}. Leave it out to count every position."
        )
    return JudgedItems(arrays.masked_fill(arrays.as_floats(labels), ~mask, 0.0), mask)


def ranked(rankings: Array, labels: Array, mask: Array, *, cutoff: int | None = None) -> Ranked:
    """The arguments of a metric, checked, with rankings cut to the first ``cutoff`` positions."""
    rankings, labels, mask = arrays.alike(rankings, labels, mask)
    items = judged_items(labels, mask, cutoff=cutoff)
    if rankings.ndim < 2 or rankings.shape[-2] != labels.shape[0]:
        raise RankPolicyError(
            f"rankings must have the shape (..., query, position) with {labels.shape[0]} queries; "
            f"got {tuple(rankings.shape)}. For one query add an axis: rankings[None]."
        )
    return Ranked(rankings[..., :cutoff], items)


def rank_numbers(num_positions: int, *, like: Array) -> Array:
    """1, 2, ..., ``num_positions`` (position,), in the dtype and on the device of ``like``."""
    xp, device = arrays.namespace(like), like.device
    return xp.arange(1, num_positions + 1, dtype=like.dtype, device=device)


def discounts(num_positions: int, *, like: Array) -> Array:
    """1 / log2(1 + rank) for ranks 1 to ``num_positions`` (position,), in the dtype and on the device of ``like``."""
    xp, device = arrays.namespace(like), like.device
    return 1 / xp.log2(xp.arange(2, num_positions + 2, dtype=like.dtype, device=device))


def cut_weights(rank_weights: Array, cutoff: int | None) -> Array:
    """Rank weights (position,) with 0 past the cutoff."""
    return rank_weights if cutoff is None else arrays.resized(rank_weights[:cutoff], len(rank_weights))


def full_rank_weights(rank_weights: Array | None, *, like: Array, cutoff: int | None = None) -> Array:
    """One float64 weight per position of a policy's arrays ``like`` (query, item): 1 / log2(1 + rank) unless given, 0 past the cutoff.

    >>> full_rank_weights(None, like=np.zeros((1, 4)), cutoff=2).round(4)
    array([1.    , 0.6309, 0.    , 0.    ])
    >>> full_rank_weights([1.0], like=np.zeros((1, 2)))
    array([1., 0.])
    """
    in_double = arrays.zeros((0,), like=like, dtype=arrays.namespace(like).float64)
    num_positions = like.shape[-1]
    if rank_weights is None:
        weights = discounts(num_positions, like=in_double)
    else:
        weights = arrays.as_like(rank_weights, in_double)
        if weights.ndim != 1:
            raise RankPolicyError(f"rank_weights must be a vector (position,); got shape {tuple(weights.shape)}.")
    return arrays.resized(weights[:cutoff], num_positions)


def fill_empty(values: Array, has_relevant: Array, conventions: Conventions) -> Array:
    """Values (..., query), replaced by the value of ``conventions.empty`` where a query (query,) has no relevant item."""
    empty = math.nan if conventions.empty == "skip" else float(conventions.empty)
    return arrays.masked_fill(values, ~has_relevant, empty)


def skip_empty(values: Array, has_relevant: Array, conventions: Conventions) -> Array:
    """Values (..., query), NaN at queries without relevant items if these are skipped; for sums, which are 0 there anyway."""
    return arrays.masked_fill(values, ~has_relevant, math.nan) if conventions.empty == "skip" else values


def divide_by_ideal(values: Array, ideal: Array) -> Array:
    """values / ideal, and 0 where the ideal is 0."""
    return values / arrays.masked_fill(ideal, ideal == 0, 1)


def all_items(num_queries: int, num_items: int) -> Array:
    """The mask of queries that all have the same number of items, without padding (query, item).

    Parameters
    ----------
    num_queries
        Number of queries.
    num_items
        Number of items of each query.

    >>> all_items(1, 2)
    array([[ True,  True]])
    """
    return np.ones((num_queries, num_items), bool)


def rank_by_score(scores: Array, mask: Array) -> Array:
    """Rankings by descending score (..., query, item); equal scores keep item order, padded items come last.

    Parameters
    ----------
    scores
        Score of each item (..., query, item); higher is better.
    mask
        True where an item is real (query, item).

    >>> rank_by_score(np.array([[0.1, 0.9, 0.9, 5.0]]), np.array([[True, True, True, False]]))
    array([[1, 2, 0, 3]])
    """
    scores, mask = arrays.alike(scores, mask)
    if arrays.is_tensor(scores):
        return scores.masked_fill(~mask, -math.inf).sort(dim=-1, descending=True, stable=True).indices
    return np.argsort(-arrays.masked_fill(scores, ~mask, -math.inf), axis=-1, stable=True)


def ranks_of(rankings: Array, num_items: int | None = None) -> Array:
    """1-based rank of each item (..., item): the inverse of a ranking. Items that a prefix leaves out rank just after it.

    Parameters
    ----------
    rankings
        Items in ranked order (..., position).
    num_items
        Number of items of each query, for rankings that are prefixes; None (the default) is the number of positions.

    >>> ranks_of(np.array([[2, 0, 1]])), ranks_of(np.array([[2]]), num_items=3)
    (array([[2, 3, 1]]), array([[2, 2, 1]]))
    """
    (rankings,) = arrays.alike(rankings)
    num_positions = rankings.shape[-1]
    items = num_positions if num_items is None else num_items
    ranks = arrays.zeros((items,), like=rankings) + (num_positions + 1)
    return arrays.scatter(ranks, rankings, rank_numbers(num_positions, like=rankings))


HIGHEST_EXPONENT = 1000  # of 2^label in double precision


def check_exp2_gain(highest: float, conventions: Conventions) -> None:
    """Refuse labels whose gain 2^label - 1 is out of the range of numbers, so that no query silently becomes NaN."""
    if conventions.gain == "exp2" and highest > HIGHEST_EXPONENT:
        raise RankPolicyError(
            f"with the gain 2^label - 1 labels must be at most {HIGHEST_EXPONENT}; the highest is {highest:g}. Map labels to "
            "small grades, or take them as gains.",
            python="Pass conventions=Conventions(gain='linear').",
            command_line="Use --gain linear.",
        )
