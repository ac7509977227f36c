"""Side columns: numbers and categories of the items besides texts and features, by name; values may be missing.

How the items of a query were shown: at which rank, to which user and when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


MISSING_CATEGORY = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideColumns:
    """Columns with one value per item; a property of the query, such as the hour, is repeated for all its items.

    >>> side = SideColumns(numbers={"age": np.array([3.0, np.nan], np.float32)}, categories={"kind": np.array(["mail", ""])})
    >>> side.take(np.array([1])).categories["kind"].tolist()
    ['']
    """

    numbers: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)  # (items,) each; NaN: missing
    categories: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # (items,) texts each; "": missing

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, numbers first."""
        return (*self.numbers, *self.categories)

    def lengths(self) -> set[int]:
        """The numbers of items of the columns; one number where they agree."""
        return {len(column) for column in (*self.numbers.values(), *self.categories.values())}

    def take(self, rows: NDArray[Any]) -> SideColumns:
        """The columns of these items."""
        return SideColumns(
            numbers={name: column[rows] for name, column in self.numbers.items()},
            categories={name: column[rows] for name, column in self.categories.items()},
        )


def joined_columns(tables: Sequence[SideColumns]) -> SideColumns:
    """The columns of several datasets, one after the other; all must have the same ones."""
    for table in tables:
        if set(table.numbers) != set(tables[0].numbers) or set(table.categories) != set(tables[0].categories):
            raise RankPolicyError(
                "datasets to concatenate must have the same side columns of the same kinds; got "
                f"{', '.join(tables[0].names)} and {', '.join(table.names)}."
            )
    return SideColumns(
        numbers={name: np.concatenate([table.numbers[name] for table in tables]) for name in tables[0].numbers},
        categories={
            name: np.concatenate([table.categories[name] for table in tables]) for name in tables[0].categories
        },
    )
