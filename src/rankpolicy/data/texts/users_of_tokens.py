"""Which users have seen which texts, words and n-grams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.types import RankPolicyError

_PAIRS_PER_BLOCK = 4_000_000  # (part, user) pairs in memory at once


def user_of_query(dataset: RankingDataset, min_users: int) -> NDArray[np.int64]:
    """The number of the user of each query (queries,)."""
    if dataset.shown_by_query is None or dataset.shown_by_query.users is None:
        raise RankPolicyError(
            f"min_users={min_users} needs the user of each query; the training data have none. "
            "Add a user column to the click table, or set min_users=1 to keep every word."
        )
    return np.unique(dataset.shown_by_query.users, return_inverse=True)[1]


def distinct_pairs(
    things: NDArray[np.int64], users: NDArray[np.int64], num_things: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct pairs of a thing and the user who has seen it, in the order of users."""
    pairs = np.sort(users * num_things + things)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    return pairs % num_things, pairs // num_things


def parts_seen(
    things: NDArray[np.int64],
    users: NDArray[np.int64],
    parts_of: Sequence[NDArray[np.int64]],
    num_parts: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct pairs of a part and its user, from the distinct pairs of things and users and the parts of each thing."""
    if num_parts == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    sizes = np.array([len(parts) for parts in parts_of])
    flat, starts = np.concatenate(parts_of), np.cumsum(sizes) - sizes
    cells = np.cumsum(sizes[things])
    ends_of_users = np.flatnonzero(np.diff(users, append=users[-1] + 1)) + 1
    blocks_of_pairs = []
    first = 0
    # Blocks of whole users, so that pairs which are distinct in a block are distinct overall.
    while first < len(things):
        done = cells[first - 1] if first else 0
        last = int(np.searchsorted(cells, done + _PAIRS_PER_BLOCK))
        next_end = int(np.searchsorted(ends_of_users, last, side="right"))
        end = int(ends_of_users[min(next_end, len(ends_of_users) - 1)])
        block = sizes[things[first:end]]
        within = np.arange(block.sum()) - np.repeat(np.cumsum(block) - block, block)
        parts = flat[np.repeat(starts[things[first:end]], block) + within]
        blocks_of_pairs.append(distinct_pairs(parts, np.repeat(users[first:end], block), num_parts))
        first = end
    seen_parts, seen_users = zip(*blocks_of_pairs, strict=True)
    return np.concatenate(seen_parts), np.concatenate(seen_users)
