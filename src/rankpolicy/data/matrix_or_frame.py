"""Datasets made from what a user has at hand: a matrix or a frame of features, labels and queries as arrays or as names of columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from rankpolicy.data.arrays import as_matrix, check_one_of_qid_and_group, checked_sizes, from_arrays
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.frames import columns_of, frame_features, frame_names, frame_numbers, from_frame
from rankpolicy.types import RankPolicyError


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
