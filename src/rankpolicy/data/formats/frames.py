"""pandas and polars data frames with one row per item.

Datasets made from what a user has at hand: a matrix or a frame of features, labels and queries as arrays or as names of columns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, timedelta
from numbers import Number
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.arrays import DATE_ADVICE, as_matrix, check_one_of_qid_and_group, checked_sizes, from_arrays
from rankpolicy.data.categories import decoded, encoded
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

_TO_NUMERIC = "Make it numbers: pd.to_numeric(column)."
_TO_CATEGORIES = (
    "Make it categories (pandas .astype('category'), polars .cast(pl.Categorical)), or leave it out (ignore=)."
)
MOST_CATEGORIES = 1000  # more are a text or an id, which a ranker cannot learn from


@checked_kinds
def from_frame(
    frame: Any,
    *,
    qid: str | ArrayLike = "qid",
    label: str | ArrayLike | None = "label",
    features: Sequence[str] | None = None,
    item_id: str | None = None,
    protected: str | None = None,
    ignore: Sequence[str] = (),
    text_is: Literal["error", "categories"] = "error",
) -> RankingDataset:
    """A dataset from a pandas or polars frame with one row per item.

    Parameters
    ----------
    frame
        The frame.
    qid
        Name of the column with the query id of each row, or these ids as an array; rows may be in any order.
    label
        Name of the column of labels, or the labels as an array; None for data still to be ranked.
    features
        Names of the feature columns; None: all remaining columns. They hold numbers, or categories (pandas' category, polars' Categorical
        and Enum). Missing values are allowed: rankers learn from them. Infinity is not.
    item_id
        Name of the column of item ids; None: the column item_id if there is one.
    protected
        Name of the column of protected groups; None: the column group if there is one.
    ignore
        Names of columns to leave out.
    text_is
        What a feature column of text is: an "error" (the default), or "categories".

    >>> import polars
    >>> from_frame(polars.DataFrame({"qid": [7, 7], "label": [0, 2], "bm25": [0.5, 1.5]})).feature_names
    ('bm25',)
    """
    columns = [str(column) for column in columns_of(frame)]
    if columns != list(frame.columns):
        frame = frame.set_axis(columns, axis=1)  # pandas numbers columns without names
    item_id = "item_id" if item_id is None and "item_id" in columns and "item_id" not in (features or ()) else item_id
    protected = "group" if protected is None and "group" in columns and "group" not in (features or ()) else protected
    named = {"qid": qid, "label": label, "item_id": item_id, "protected": protected}
    roles = {role: column for role, column in named.items() if isinstance(column, str)}
    for role, column in roles.items():
        if column not in columns:
            is_label = role == "label"
            raise RankPolicyError(
                f"the frame must have the {role} column {column!r}; it has {listed(columns)}.",
                python="For data still to be ranked pass label=None." if is_label else f"Name another with {role}=.",
                command_line="Data still to be ranked may come without labels in 'rankpolicy predict'."
                if is_label
                else f"Name another with --{role}.",
            )
    strangers = [column for column in ignore if column not in columns]
    if strangers:
        raise RankPolicyError(f"the columns to ignore must be in the frame; it has no {listed(strangers)}.")
    if features is None:
        features = [column for column in columns if column not in roles.values() and column not in ignore]
    features = list(features)
    unknown = [column for column in features if column not in columns]
    if unknown or not features:
        required = f"the feature columns {listed(unknown)}" if unknown else "at least one feature column"
        raise RankPolicyError(f"the frame must have {required}; it has {listed(columns)}.")
    matrix, categories = frame_features(frame, features, text_is=text_is)
    dataset = from_arrays(
        matrix,
        frame_numbers(frame, label, "label") if isinstance(label, str) else label,
        qid=frame_names(frame, qid, "qid") if isinstance(qid, str) else qid,
        item_ids=None if item_id is None else frame_names(frame, item_id, "item_id"),
        protected=None if protected is None else frame_names(frame, protected, "protected"),
        feature_names=features,
    )
    return replace(dataset, categories=categories) if categories else dataset


@checked_kinds
def to_frame(dataset: RankingDataset) -> Any:
    """A polars frame with the columns qid, label, item_id and group (where known), and one column per feature.

    Its rows are in the order of the rows that the dataset was made from. A frame has no place for the kind of the labels and the query
    weights; ``write_parquet`` keeps both.

    Parameters
    ----------
    dataset
        The dataset; unnamed features become feature_1, feature_2, ...
    """
    names = dataset.feature_names or tuple(f"feature_{number}" for number in range(1, dataset.num_features + 1))
    columns: dict[str, Any] = {"qid": dataset.query_ids[dataset.query_of_item], "label": dataset.labels}
    if dataset.item_ids is not None:
        columns["item_id"] = dataset.item_ids
    if dataset.groups is not None:
        columns["group"] = dataset.groups
    clashing = [name for name in names if name in ("qid", "label", "item_id", "group")] + [
        name for name in names if names.count(name) > 1
    ]
    if clashing:
        raise RankPolicyError(
            f"feature names must differ from one another and from qid, label, item_id, group; got {clashing[0]!r}."
        )
    columns |= {
        name: dataset.in_row_order(dataset.features_by_query[:, feature_index])
        for feature_index, name in enumerate(names)
    }
    polars = require("polars", "Reading and writing frames")
    for name, categories in (dataset.categories or {}).items():
        columns[name] = polars.Series(decoded(columns[name], categories), dtype=polars.Categorical)
    return polars.DataFrame(columns)


def frame_features(
    frame: Any,
    features: Sequence[Any] | None = None,
    *,
    text_is: str = "error",
    categorical: Collection[str] = (),
) -> tuple[NDArray[np.float32], dict[str, tuple[str, ...]]]:
    """Feature columns (rows, features) of a frame as numbers, NaN where a value is missing, and the categories of categorical ones.

    Text in the columns ``categorical``, which a fitted ranker knows as categories, is categories whatever ``text_is`` says.
    """
    names = list(frame.columns) if features is None else list(features)
    matrix, categories = np.empty((len(frame), len(names)), np.float32), {}
    for feature_index, column in enumerate(names):
        if _is_categorical(frame[column], "categories" if column in categorical else text_is):
            matrix[:, feature_index], categories[str(column)] = _categories(frame[column], column)
        else:
            matrix[:, feature_index] = frame_numbers(frame, column, "feature")
    return matrix, categories


def columns_of(frame: Any) -> Any:
    """The columns of a frame of pandas or polars; refuses other tables."""
    if hasattr(frame, "collect"):
        raise RankPolicyError("frame must hold data; got a lazy frame. Call .collect() on it first.")
    if not hasattr(frame, "columns") or not hasattr(frame, "__getitem__") or not hasattr(frame, "dtypes"):
        raise RankPolicyError(
            f"frame must be a pandas or polars DataFrame; got {type(frame).__name__}. "
            "Arrays go to from_arrays, an Arrow table to polars.from_arrow first."
        )
    return frame.columns


def _values(frame: Any, column: str, role: str) -> NDArray[Any]:
    series = frame[column]
    if getattr(series, "ndim", 1) != 1:
        raise RankPolicyError(f"column names must differ; the frame has {column!r} more than once.")
    num_missing = series.null_count() if hasattr(series, "null_count") else int(series.isna().sum())
    if num_missing and role == "feature":
        return _with_nan(series)
    if num_missing:
        raise RankPolicyError(
            f"{role} column {column!r} must not have missing values; {num_missing} of {len(frame)} are missing. "
            "Fill them or drop these rows."
        )
    return np.asarray(series.to_numpy())


def _with_nan(series: Any) -> NDArray[Any]:
    """A column of numbers with missing values, which become NaN; a column of something else as it is."""
    if str(series.dtype) == "object" and series.notna().any():
        return np.asarray(series)  # numpy would make numbers of texts
    if hasattr(series, "null_count"):
        polars = require("polars", "A frame")
        is_number = series.dtype.is_numeric() or series.dtype in (polars.Boolean, polars.Null)
        return np.asarray((series.cast(polars.Float64) if is_number else series).to_numpy())
    try:
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        return np.asarray(series.to_numpy())


def _is_categorical(series: Any, text_is: str) -> bool:
    """Whether a column holds categories, not numbers."""
    kind = str(getattr(series, "dtype", "")).split("(")[0]
    return kind in ("category", "Categorical", "Enum") or (
        text_is == "categories" and kind in ("String", "Utf8", "object", "str", "string")
    )


def _categories(series: Any, column: str) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    codes, names = encoded(series.to_list() if hasattr(series, "null_count") else series.astype(object).tolist())
    if len(names) > MOST_CATEGORIES:
        raise RankPolicyError(
            f"a categorical column must have at most {MOST_CATEGORIES} categories; {column!r} has {len(names)}. Leave it out "
            "(ignore=, on the command line --ignore), or join rare ones."
        )
    return codes, names


def frame_numbers(frame: Any, column: str, role: str) -> NDArray[np.float32]:
    """A column as numbers; missing ones are NaN in a feature, and an error elsewhere."""
    advice = _advice(frame[column]) if getattr(frame[column], "ndim", 1) == 1 else None
    values = _values(frame, column, role)
    if advice is not None or values.dtype.kind not in "iufb":
        advice = advice or (_TO_CATEGORIES if role == "feature" else "Map it to 0, 1, 2, ...")
        raise RankPolicyError(f"{role} column {column!r} must be numbers; got {frame[column].dtype}. {advice}")
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32)
    allowed = ~np.isinf(numbers) if role == "feature" else np.isfinite(numbers)
    if not allowed.all():
        row = int(np.argmin(allowed))
        raise RankPolicyError(f"{role} column {column!r} must be finite; row {row} is {values[row]}. Clip it first.")
    return numbers


def _advice(series: Any) -> str | None:
    """How a column of dates, durations, decimal numbers or objects becomes one of numbers; None for other columns."""
    kind = str(series.dtype).lower()
    is_polars = hasattr(series, "null_count")
    if kind == "object":
        return None if is_polars else _advice_for_objects(series.dropna().tolist())
    if kind.startswith(("date", "period", "timestamp")):
        return (
            "Give the days since a date: (column - column.min()).dt.total_days()." if is_polars else DATE_ADVICE["date"]
        )
    if kind.startswith(("time", "duration")):
        return "Give the seconds: column.dt.total_seconds()." if is_polars else DATE_ADVICE["duration"]
    if kind.startswith("decimal"):
        return "Make it numbers: column.cast(pl.Float64)." if is_polars else _TO_NUMERIC
    return None


def _advice_for_objects(values: list[Any]) -> str | None:
    """The same for objects of Python, as databases give them."""
    for kinds, advice in ((Number, _TO_NUMERIC), (date, DATE_ADVICE["date"]), (timedelta, DATE_ADVICE["duration"])):
        if values and all(isinstance(value, kinds) for value in values):
            return advice
    return None


def frame_names(frame: Any, column: str, role: str) -> NDArray[Any]:
    """A column of ids, none of them missing."""
    values = _values(frame, column, role)
    return values.astype(str) if values.dtype.kind == "O" else values


def listed(columns: Sequence[str]) -> str:
    """Names of columns for an error; of many, the first twenty."""
    return ", ".join(columns[:20]) + (f" and {len(columns) - 20} more" if len(columns) > 20 else "")


def dataset_of_rows(
    X: Any,
    y: Any = None,
    *,
    qid: Any = None,
    group: Any = None,
    features: Sequence[str] | None = None,
    categorical: Collection[str] = (),
) -> RankingDataset:
    """A dataset from a matrix or a frame. Labels and query ids of a frame may be names of its columns.

    Where they are, the frame is read as by ``from_frame``: the columns item_id and group have their roles. Otherwise all columns are
    features.
    """
    if not is_frame(X):
        _refuse_column_names(X, y=y, qid=qid, group=group)
        return from_arrays(matrix_of(X), y, qid=qid, group=group)
    if not isinstance(y, str) and not isinstance(qid, str):
        X = X if features is None or features == list(X.columns) else X[list(features)]
        matrix, categories = frame_features(X, categorical=categorical)
        dataset = from_arrays(matrix, y, qid=qid, group=group, feature_names=column_names(X))
        return replace(dataset, categories=categories) if categories else dataset
    text_is: Literal["error", "categories"] = "categories" if categorical else "error"
    return from_frame(X, qid=_query_ids(qid, group, len(X)), label=y, features=features, text_is=text_is)


def dataset_of_labels(rows: Any, y: Any = None, *, qid: Any = None, group: Any = None) -> RankingDataset:
    """A dataset without features, to measure scores: from labels, or from a frame and the name of its column of labels."""
    item_ids = None
    if is_frame(rows):
        if y is None:
            raise RankPolicyError(
                f"labels must be named: y= is a column of the frame or one label per row. It has {', '.join(map(str, rows.columns))}."
            )
        columns = list(rows.columns)
        y = frame_numbers(rows, y, "label") if isinstance(y, str) and _has_column(columns, y, "y") else y
        qid = frame_names(rows, qid, "qid") if isinstance(qid, str) and _has_column(columns, qid, "qid") else qid
        item_ids = frame_names(rows, "item_id", "item_id") if "item_id" in columns else None
    labels = rows if y is None else y
    _refuse_column_names(rows, y=labels, qid=qid, group=group)
    return from_arrays(np.empty((len(labels), 0), np.float32), labels, qid=qid, group=group, item_ids=item_ids)


def is_frame(X: Any) -> bool:
    """Whether this is a frame of pandas or polars; refuses other tables, which would be taken for matrices."""
    return (hasattr(X, "collect") or hasattr(X, "columns")) and columns_of(X) is not None


def matrix_of(X: Any) -> Any:
    """A matrix from an array; a sparse matrix as it is."""
    matrix = as_matrix(X)
    if matrix.ndim == 0:
        raise RankPolicyError(
            f"features must be a matrix (items, features), a frame or a RankingDataset; got {type(X).__name__}. "
            "Files are read with read_letor or read_parquet."
        )
    return matrix


def column_names(X: Any) -> list[str] | None:
    """The column names of a frame; None without names, or if they are the numbers that pandas makes up."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _query_ids(qid: Any, group: Any, num_rows: int) -> Any:
    """Query ids or the name of their column; from sizes, the numbers of the queries."""
    check_one_of_qid_and_group(qid, group, num_rows)
    if group is None:
        return qid
    sizes = checked_sizes(group, num_rows)
    return np.repeat(np.arange(len(sizes)), sizes)


def _has_column(columns: Sequence[Any], name: str, argument: str) -> bool:
    if name not in columns:
        raise RankPolicyError(
            f"{argument}={name!r} must be a column of the frame; it has {', '.join(map(str, columns))}."
        )
    return True


def _refuse_column_names(X: Any, **arguments: Any) -> None:
    for name, value in arguments.items():
        if isinstance(value, str):
            raise RankPolicyError(
                f"{name}={value!r} would be a column of a frame; the rows are a {type(X).__name__}. Give one value per row."
            )
