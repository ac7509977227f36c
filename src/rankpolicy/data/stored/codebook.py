"""Codes of one or two bytes for the values of each feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.stored.sketch import QuantileSketch
from rankpolicy.display import short_repr
from rankpolicy.kernels import HAS_NUMBA

Floats = NDArray[np.float32]
MOST_CODES = {"uint8": 255, "uint16": 4095}  # of values; one more is the code of a missing value


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """Where the values of each feature are cut into bins, each of which has one code."""

    cuts: Floats  # Ascending cuts (features, most cuts), filled up with infinity. A value has as its code the number of cuts below it
    num_cuts: NDArray[np.int64]  # How many cuts each feature has (features,)
    dtype: np.dtype[Any]  # Type of the codes, uint8 or uint16

    __repr__ = short_repr

    @classmethod
    def of_sketch(cls, sketch: QuantileSketch, dtype: str) -> Cuts:
        """The cuts into bins of about equally many rows; where a feature has few different values, each has its own bin."""
        chosen = []
        for column in range(sketch.num_columns):
            values = sketch.distinct(column)
            chosen.append(sketch.cuts(column, MOST_CODES[dtype]) if values is None else values[:-1])
        num_cuts = np.array([len(cuts) for cuts in chosen], np.int64)
        padded = np.full((len(chosen), max(1, int(num_cuts.max(initial=1)))), np.inf, np.float32)
        for row, cuts in zip(padded, chosen, strict=True):
            row[: len(cuts)] = cuts
        return cls(padded, num_cuts, np.dtype(dtype))

    @property
    def num_codes(self) -> int:
        """How many codes values can have; the next number is the code of a missing value."""
        return int(self.num_cuts.max(initial=0)) + 1

    def codes(self, columns: Floats) -> NDArray[Any]:
        """The codes (rows, features) of values (features, rows).

        >>> cuts = Cuts(np.array([[0.0, 2.0]], np.float32), np.array([2]), np.dtype("uint8"))
        >>> cuts.codes(np.array([[-1.0, 0.0, 0.5, 3.0, np.nan]], np.float32))[:, 0]
        array([0, 0, 1, 2, 3], dtype=uint8)
        """
        codes = np.empty(columns.shape[::-1], self.dtype)
        if HAS_NUMBA:
            from rankpolicy.kernels.codes import encode_columns

            encode_columns(np.ascontiguousarray(columns), self.cuts, self.num_cuts, codes, missing=self.num_codes)
            return codes
        for column, (values, cuts, count) in enumerate(zip(columns, self.cuts, self.num_cuts, strict=True)):
            bins = np.searchsorted(cuts[:count], values)
            codes[:, column] = np.where(np.isnan(values), self.num_codes, bins)
        return codes


class BinMeans:
    """The mean of the values that have each code, over rows that come in blocks: what a code stands for."""

    def __init__(self, num_features: int, num_codes: int) -> None:
        self._sums = np.zeros((num_features, num_codes))
        self._counts = np.zeros((num_features, num_codes), np.int64)

    def add(self, columns: Floats, codes: NDArray[Any]) -> None:
        """Count some more rows."""
        size = self._sums.shape[1]
        for feature, values in enumerate(columns):
            present = ~np.isnan(values)
            present_codes, present_values = codes[:, feature], values
            if not present.all():
                present_codes, present_values = present_codes[present], values[present]
            self._sums[feature] += np.bincount(present_codes, weights=present_values, minlength=size)
            self._counts[feature] += np.bincount(present_codes, minlength=size)

    def values(self) -> Floats:
        """The value of each code (features, codes + 1): its mean, and NaN for codes that do not occur and for missing values."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (self._sums / self._counts).astype(np.float32)
        return np.concatenate([means, np.full((len(means), 1), np.nan, np.float32)], axis=1)
