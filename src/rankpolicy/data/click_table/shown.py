"""How the items of a query were shown: at which rank, to which user and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.types import RankPolicyError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shown:
    """What a log records about its lists besides clicks, which are the labels of the dataset."""

    ranks: NDArray[np.int64] | None = None  # (items,) from 1
    users: NDArray[Any] | None = None  # (queries,) str
    times: NDArray[np.float64] | None = None  # (queries,) seconds

    def take(self, queries: NDArray[Any], items: NDArray[Any]) -> Shown:
        """The records of these queries and items."""
        return Shown(
            ranks=None if self.ranks is None else self.ranks[items],
            users=None if self.users is None else self.users[queries],
            times=None if self.times is None else self.times[queries],
        )


def joined_shown(records: Sequence[Shown]) -> Shown:
    """The records of several datasets, one after the other; all must record the same."""
    columns: dict[str, NDArray[Any] | None] = {}
    for name in ("ranks", "users", "times"):
        values = [getattr(record, name) for record in records]
        present = [value for value in values if value is not None]
        if present and len(present) < len(values):
            raise RankPolicyError(f"either all or none of the datasets to concatenate must have the {name} of lists.")
        columns[name] = np.concatenate(present) if present else None
    return Shown(**columns)
