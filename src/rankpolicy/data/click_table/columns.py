"""The columns of a click table as checked arrays; a value that does not fit is an error that names its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.click_table.list_columns import MISSING_CATEGORY, SideColumns
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

FEATURE = "A table of clicks"
_TRUTH = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}
_LEADING_ZERO = r"^\s*[+-]?0\d"  # 007 and postcodes are names, not numbers


@dataclass(frozen=True, slots=True, eq=False)
class ClickColumns:
    """A polars frame with one row per item shown, and a function that names the place of a row."""

    frame: Any
    place_of: Callable[[int], str]

    def has(self, name: str) -> bool:
        """Whether the frame has this column."""
        return name in self.frame.columns

    def refuse(self, is_bad: NDArray[np.bool_], name: str, what: str) -> None:
        """Raise an error that names the first bad row, if there is one."""
        if is_bad.any():
            row = int(np.argmax(is_bad))
            raise RankPolicyError(f"{self.place_of(row)}: {name} must be {what}; got {self.frame[name][row]!r:.60}.")

    def texts(self, name: str, what: str) -> Any:
        """A column as a polars series of texts, none missing or blank; numbers become texts."""
        texts = self._as_texts(name)
        self.refuse((texts.fill_null("") == "").to_numpy(), name, what)
        return texts

    def clicks(self, name: str) -> NDArray[np.float32]:
        """A column of 0 and 1."""
        marks = self._numbers_of(name)
        self.refuse((marks != 0) & (marks != 1), name, "0 or 1")
        return marks.astype(np.float32)

    def ranks(self, name: str) -> NDArray[np.int64]:
        """Positions from 1; a table that has a position 0 counts from 0."""
        positions = self._numbers_of(name)
        is_whole = np.isfinite(positions) & (positions >= 0) & (positions == np.floor(positions))
        self.refuse(~is_whole, name, "a whole number, 1 or more")
        return positions.astype(np.int64) + (1 if positions.min() == 0 else 0)

    def seconds(self, name: str) -> NDArray[np.float64]:
        """Times in seconds: numbers are seconds; dates and times count from 1970, in UTC unless they have a zone."""
        polars = require("polars", FEATURE)
        series = self.frame[name]
        if series.dtype == polars.Duration or series.dtype == polars.Time:
            raise RankPolicyError(f"the column {name!r} must hold times; it holds {series.dtype}.")
        if series.dtype.is_temporal():
            times = _since_1970(series)
        else:
            times = self._numbers_of(name)
            if _is_text(series) and not np.isfinite(times).all():
                texts = series.cast(polars.String).str.strip_chars()
                dates = texts.str.to_datetime(strict=False, time_zone="UTC", time_unit="us")
                times = np.where(np.isfinite(times), times, _since_1970(dates))
        self.refuse(~np.isfinite(times), name, "a time: seconds, or a date such as 2024-05-31 12:00:00")
        return times

    def side(self, names: Sequence[str], categories: Sequence[str]) -> SideColumns | None:
        """Side columns: numbers with NaN, categories with "" for missing values. A column without any value counts as numbers."""
        if not names:
            return None
        numbers: dict[str, NDArray[np.float32]] = {}
        texts: dict[str, NDArray[Any]] = {}
        for name in names:
            if name in categories or (_is_text(self.frame[name]) and self.frame[name].null_count() < len(self.frame)):
                texts[name] = np.array(self._as_texts(name).fill_null(MISSING_CATEGORY).to_list(), dtype=object)
            else:
                numbers[name] = self._side_numbers(name)
        return SideColumns(numbers=numbers, categories=texts)

    def _numbers_of(self, name: str) -> NDArray[np.float64]:
        """A column as numbers; NaN where a value is missing or not a number."""
        polars = require("polars", FEATURE)
        series = self.frame[name]
        if _is_text(series):
            texts = series.cast(polars.String).str.strip_chars()
            series = texts.replace_strict(_TRUTH, default=texts, return_dtype=polars.String)
        elif series.dtype.is_nested():
            raise RankPolicyError(f"the column {name!r} must hold one value per row; it holds {series.dtype}.")
        return np.asarray(series.cast(polars.Float64, strict=False).fill_null(np.nan).to_numpy(), np.float64)

    def _side_numbers(self, name: str) -> NDArray[np.float32]:
        polars = require("polars", FEATURE)
        series = self.frame[name]
        if not (series.dtype.is_numeric() or series.dtype == polars.Boolean or series.null_count() == len(series)):
            raise RankPolicyError(
                f"side column {name!r} must hold numbers or texts; it holds {series.dtype}. "
                "Turn it into one of them (a date into an age or an hour), or leave it out: side=[...] names the columns to keep."
            )
        with np.errstate(over="ignore"):
            values = series.cast(polars.Float64).fill_null(np.nan).to_numpy().astype(np.float32)
        self.refuse(np.isinf(values), name, "finite in float32, or missing")
        return np.asarray(values, np.float32)

    def _as_texts(self, name: str) -> Any:
        polars = require("polars", FEATURE)
        series = self.frame[name]
        if series.dtype.is_float():
            series = series.fill_nan(None)
            # pandas turns whole numbers into floats where one is missing: 3.0 is written 3.
            series = series.cast(polars.Int64) if (series == series.floor()).all() else series
        elif series.dtype == polars.Boolean:
            series = series.cast(polars.Int8)
        elif not (_is_text(series) or series.dtype.is_integer() or series.null_count() == len(series)):
            raise RankPolicyError(f"the column {name!r} must hold texts or numbers; it holds {series.dtype}.")
        return series.cast(polars.String).str.strip_chars()


def as_polars(frame: Any) -> Any:
    """A pandas frame as a polars frame; a polars frame unchanged."""
    polars = require("polars", FEATURE)
    if hasattr(frame, "collect"):
        raise RankPolicyError("frame must hold data; got a lazy frame. Call .collect() on it first.")
    if isinstance(frame, polars.DataFrame):
        return frame
    if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
        raise RankPolicyError(f"frame must be a pandas or polars DataFrame; got {type(frame).__name__}.")
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RankPolicyError(f"column names must differ; the frame has {twice!r} more than once.")
    return polars.DataFrame([_from_pandas(frame.iloc[:, column], name) for column, name in enumerate(names)])


def inferred_kinds(frame: Any, *, keep_as_texts: Sequence[str]) -> Any:
    """The columns of a CSV file, all texts, with those turned into numbers whose values are all numbers (or true and false)."""
    polars = require("polars", FEATURE)
    inferred = []
    for series in frame.get_columns():
        texts = series.str.strip_chars()
        texts = texts.set(texts == "", None)
        values = texts.replace_strict(_TRUTH, default=texts, return_dtype=polars.String)
        numbers = values.cast(polars.Float64, strict=False)
        is_number = numbers.null_count() == texts.null_count() and not texts.str.contains(_LEADING_ZERO).any()
        inferred.append(numbers if is_number and series.name not in keep_as_texts else texts)
    return polars.DataFrame(inferred)


def _since_1970(series: Any) -> NDArray[np.float64]:
    """Dates and times in seconds, NaN where missing."""
    polars = require("polars", FEATURE)
    times = series.cast(polars.Datetime("us")) if series.dtype == polars.Date else series
    return np.asarray(times.dt.epoch("us").cast(polars.Float64).fill_null(np.nan).to_numpy() / 1e6, np.float64)


def _is_text(series: Any) -> bool:
    polars = require("polars", FEATURE)
    return series.dtype == polars.String or isinstance(series.dtype, polars.Categorical | polars.Enum)


def _from_pandas(series: Any, name: str) -> Any:
    polars = require("polars", FEATURE)
    if series.dtype.kind in "iu" and not series.isna().any():
        return polars.Series(name, series.to_numpy())
    if series.dtype.kind in "iufb":
        return polars.Series(name, series.to_numpy(dtype=np.float64, na_value=np.nan)).fill_nan(None)
    if series.dtype.kind == "M":
        in_utc = series if series.dt.tz is None else series.dt.tz_convert("UTC").dt.tz_localize(None)
        return polars.Series(name, in_utc.to_numpy(dtype="datetime64[us]"))
    objects = series.astype(object).where(series.notna(), None)
    if hasattr(series.dtype, "categories"):
        texts = [None if value is None else str(value) for value in objects.tolist()]
        return polars.Series(name, texts, dtype=polars.String)
    try:
        return polars.Series(name, objects.tolist())
    except (TypeError, polars.exceptions.PolarsError):
        raise RankPolicyError(
            f"the column {name!r} must hold values of one kind, numbers or texts; it mixes them. Convert it first."
        ) from None
