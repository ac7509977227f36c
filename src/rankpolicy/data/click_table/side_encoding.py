"""Side columns as inputs of a network, encoded as the training data determined."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.data.click_table.list_columns import MISSING_CATEGORY, SideColumns
from rankpolicy.data.texts.text_pairs import SideTensors
from rankpolicy.types import RankPolicyError

MISSING, UNKNOWN = 0, 1  # codes of a category; the known values follow
_EXACT = 2**24  # whole numbers below are exact in float32


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberColumn:
    """A number as (value - mean) / spread if the column varied in training, and as 0 or 1 for "is missing" if values were missing then.

    A missing value becomes 0, the mean. A column without missing values in training has no mark for them: its weight would be untrained.
    """

    name: str
    mean: float
    spread: float  # 0: constant where known, so only the mark is read
    marks_missing: bool

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return int(self.spread > 0) + int(self.marks_missing)

    def encoded(self, values: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """The encoded columns (items,) of values (items,)."""
        is_missing = np.isnan(values)
        scaled = np.where(is_missing, 0.0, (values.astype(np.float64) - self.mean) / (self.spread or 1.0))
        columns = [scaled] if self.spread > 0 else []
        return [column.astype(np.float32) for column in (*columns, *([is_missing] if self.marks_missing else []))]


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryColumn:
    """A category as a code: 0 missing, 1 unknown (not in training, or seen there by too few users), from 2 the known values."""

    name: str
    known: tuple[str, ...]

    @property
    def num_codes(self) -> int:
        """Number of codes."""
        return 2 + len(self.known)

    def encoded(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """The codes (items,) of values (items,)."""
        code_of = {MISSING_CATEGORY: MISSING} | {value: code for code, value in enumerate(self.known, 2)}
        return np.fromiter((code_of.get(value, UNKNOWN) for value in values.tolist()), np.int64, len(values))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SideEncoding:
    """How side columns are encoded; those without information in the training data are left out, and named in a warning.

    >>> side = SideColumns(numbers={"age": np.array([1, 3, np.nan], np.float32)}, categories={"kind": np.array(["a", "b", ""])})
    >>> encoding = SideEncoding.fit(side, None, min_users=1)
    >>> encoding.tensors(side, 3).numbers.tolist(), encoding.tensors(side, 3).categories.tolist()
    ([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[2], [3], [0]])
    """

    numbers: tuple[NumberColumn, ...] = ()
    categories: tuple[CategoryColumn, ...] = ()
    unread: tuple[str, ...] = ()  # columns without information in the training data
    _warned: set[str] = field(default_factory=set, init=False, repr=False)  # columns whose absence has been reported

    @classmethod
    def fit(cls, side: SideColumns | None, users: NDArray[Any] | None, *, min_users: int) -> SideEncoding:
        """The encoding of the training data; ``users`` (items,) is the user who saw each item, needed for ``min_users`` above 1."""
        if side is None:
            return cls()
        numbers = [_number_column(name, values) for name, values in side.numbers.items()]
        categories = [
            CategoryColumn(name=name, known=_known(values, users, min_users))
            for name, values in side.categories.items()
        ]
        read_categories = [
            column for column in categories if len(np.unique(column.encoded(side.categories[column.name]))) > 1
        ]
        read_numbers = [column for column in numbers if column.width]
        read = {*(column.name for column in read_numbers), *(column.name for column in read_categories)}
        unread = tuple(name for name in side.names if name not in read)
        if unread:
            reasons = ", ".join(f"{name} ({_reason(name, side, min_users)})" for name in unread)
            warnings.warn(
                f"side columns without information in the training data are left out: {reasons}.", stacklevel=2
            )
        return cls(numbers=tuple(read_numbers), categories=tuple(read_categories), unread=unread)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> SideEncoding:
        """The encoding that ``document`` described."""
        return cls(
            numbers=tuple(NumberColumn(**column) for column in document["numbers"]),
            categories=tuple(
                CategoryColumn(name=column["name"], known=tuple(column["known"])) for column in document["categories"]
            ),
            unread=tuple(document["unread"]),
        )

    def document(self) -> dict[str, Any]:
        """The encoding as plain values that JSON can hold."""
        return {
            "numbers": [asdict(column) for column in self.numbers],
            "categories": [asdict(column) for column in self.categories],
            "unread": list(self.unread),
        }

    @property
    def num_numbers(self) -> int:
        """Number of encoded columns of numbers."""
        return sum(column.width for column in self.numbers)

    def tensors(self, side: SideColumns | None, num_items: int) -> SideTensors:
        """The encoded columns of new data. An absent column counts as missing, with one warning; other columns are not read."""
        columns = SideColumns() if side is None else side
        self._warn_of_absent(columns)
        numbers = np.zeros((num_items, self.num_numbers), np.float32)
        column = 0
        for number in self.numbers:
            for encoded in number.encoded(_numbers(columns, number.name, num_items)):
                numbers[:, column] = encoded
                column += 1
        codes = [category.encoded(_categories(columns, category, num_items)) for category in self.categories]
        categories = np.column_stack(codes) if codes else np.zeros((num_items, 0), np.int64)
        return SideTensors(torch.from_numpy(numbers), torch.from_numpy(categories))

    def _warn_of_absent(self, side: SideColumns) -> None:
        names = [*(column.name for column in self.numbers), *(column.name for column in self.categories)]
        absent = [name for name in names if name not in side.names and name not in self._warned]
        if not absent:
            return
        self._warned.update(absent)
        extra = [name for name in side.names if name not in (*names, *self.unread)]
        advice = f" Columns that the training data did not have are not read: {', '.join(extra)}." if extra else ""
        warnings.warn(
            f"the data have no side column {', '.join(absent)}, which the training data had: taken as missing.{advice}",
            stacklevel=2,
        )


def _number_column(name: str, values: NDArray[np.float32]) -> NumberColumn:
    present_values = values[~np.isnan(values)].astype(np.float64)
    if len(present_values) == 0:
        return NumberColumn(name=name, mean=0.0, spread=0.0, marks_missing=False)
    # With rounding, some constants have a spread above 0.
    is_constant = bool((present_values == present_values[0]).all())
    spread = 0.0 if is_constant else float(present_values.std())
    return NumberColumn(
        name=name, mean=float(present_values.mean()), spread=spread, marks_missing=len(present_values) < len(values)
    )


def _known(values: NDArray[Any], users: NDArray[Any] | None, min_users: int) -> tuple[str, ...]:
    """The categories seen by at least ``min_users`` users, sorted."""
    texts = np.asarray(values, dtype=str)
    names, codes = np.unique(texts, return_inverse=True)
    if min_users > 1:
        assert users is not None, "checked when the vocabulary was made"
        numbers = np.unique(users, return_inverse=True)[1]
        seen = np.unique(numbers * len(names) + codes)
        names = names[np.bincount(seen % len(names), minlength=len(names)) >= min_users]
    return tuple(name for name in names.tolist() if name != MISSING_CATEGORY)


def _reason(name: str, side: SideColumns, min_users: int) -> str:
    if name in side.numbers:
        return "no value is known" if np.isnan(side.numbers[name]).all() else "always the same"
    if (side.categories[name] == MISSING_CATEGORY).all():
        return "no value is known"
    is_constant = (side.categories[name] == side.categories[name][0]).all()
    return "always the same" if is_constant else f"no value is seen by {min_users} users"


def _numbers(side: SideColumns, name: str, num_items: int) -> NDArray[np.float32]:
    if name in side.numbers:
        return side.numbers[name]
    text = next((value for value in side.categories.get(name, ()) if value != MISSING_CATEGORY), None)
    if text is not None:
        raise RankPolicyError(
            f"side column {name!r} must hold numbers, as in the training data; it holds texts, such as {text!r:.40}. Convert it first."
        )
    return np.full(num_items, np.nan, np.float32)


def _categories(side: SideColumns, column: CategoryColumn, num_items: int) -> NDArray[Any]:
    if column.name in side.categories:
        return side.categories[column.name]
    values = side.numbers.get(column.name)
    texts = np.full(num_items, MISSING_CATEGORY, dtype=object)
    if values is None or np.isnan(values).all():
        return texts
    is_known = ~np.isnan(values)
    numbers = values[is_known]
    # Names may look like numbers: the sizes S, M, 38, 40. Only an exact number can be turned back into its name.
    is_exact = bool(((numbers == np.floor(numbers)) & (np.abs(numbers) < _EXACT)).all())
    if is_exact:
        texts[is_known] = numbers.astype(np.int64).astype(str)
    if not is_exact or set(column.known).isdisjoint(texts[is_known].tolist()):
        raise RankPolicyError(
            f"side column {column.name!r} must hold categories, as in the training data ({', '.join(column.known[:3])}, ...); it holds "
            f"numbers, such as {numbers[0]:g}. Make it texts, or read the table with categories=[{column.name!r}]."
        )
    return texts
