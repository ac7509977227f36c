"""What is known of items beside their text or features: numbers and categories, by name, some of them missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.types import RankPolicyError

MISSING_CATEGORY = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideColumns:
    """Columns with a value an item; what belongs to the query, such as the hour, is the same for all its items.

    >>> side = SideColumns(numbers={"age": np.array([3.0, np.nan], np.float32)}, categories={"kind": np.array(["mail", ""])})
    >>> side.take(np.array([1])).categories["kind"].tolist()
    ['']
    """

    numbers: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)  # (items,) each; NaN: not known
    categories: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # (items,) texts each; "": not known

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.numbers, *self.categories)

    def lengths(self) -> set[int]:
        """How many items the columns have; one number where they agree."""
        return {len(column) for column in (*self.numbers.values(), *self.categories.values())}

    def take(self, rows: NDArray[Any]) -> SideColumns:
        return SideColumns(
            numbers={name: column[rows] for name, column in self.numbers.items()},
            categories={name: column[rows] for name, column in self.categories.items()},
        )


def joined_columns(parts: Sequence[SideColumns]) -> SideColumns:
    """The columns of several datasets, one after the other; all must have the same ones."""
    for part in parts:
        if set(part.numbers) != set(parts[0].numbers) or set(part.categories) != set(parts[0].categories):
            raise RankPolicyError(
                "datasets to concatenate must have the same side columns of the same kinds; got "
                f"{', '.join(parts[0].names)} and {', '.join(part.names)}."
            )
    return SideColumns(
        numbers={name: np.concatenate([part.numbers[name] for part in parts]) for name in parts[0].numbers},
        categories={name: np.concatenate([part.categories[name] for part in parts]) for name in parts[0].categories},
    )
