"""Turns what users give to a ranker (arrays, frames, click tables, datasets) into a RankingDataset, and checks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankpolicy.data.arrays import from_arrays
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.fairness.groups import encode_groups
from rankpolicy.types import RankPolicyError

# Protected groups: one value per row, or a function of the dataset that gives them.
Groups = ArrayLike | Callable[[RankingDataset], ArrayLike]


def training_dataset(X: Any, y: ArrayLike | None, qid: ArrayLike | None, group: ArrayLike | None) -> RankingDataset:
    """The training data: a dataset as it is, or one made from arrays, a frame or a click table."""
    if isinstance(X, RankingDataset):
        _refuse_arrays_beside_dataset(y, qid, group)
        return X
    if _is_click_table(X):
        _refuse_arrays_beside_dataset(y, qid, group)
        return _from_click_table(X)
    if y is None:
        raise RankPolicyError(
            "fit needs labels: fit(X, y, qid=...), a RankingDataset that holds them, or a click table, a frame with the columns "
            "query_text, item_text and clicked. fit(X) requires y to be passed, but the target y is None."
        )
    return from_arrays(_matrix(X), y, qid=qid, group=group, feature_names=_column_names(X))


def validation_dataset(
    valid: Any,
    eval_set: Sequence[tuple[Any, ArrayLike]] | None,
    eval_qid: Sequence[ArrayLike] | None,
    eval_group: Sequence[ArrayLike] | None,
) -> RankingDataset | None:
    """The validation data, from ``valid`` or from the lists that LightGBM and XGBoost take; None without any."""
    if valid is not None:
        if eval_set is not None:
            raise RankPolicyError("pass the validation data once: valid= or eval_set=, not both.")
        if isinstance(valid, RankingDataset):
            return valid
        if not _is_click_table(valid):
            raise RankPolicyError(
                f"valid must be a RankingDataset; got {type(valid).__name__}. Arrays go into eval_set=[(Xv, yv)]."
            )
        return _from_click_table(valid)
    if eval_set is None:
        if eval_qid is not None or eval_group is not None:
            raise RankPolicyError(
                "eval_qid and eval_group are the queries of eval_set; give eval_set=[(Xv, yv)] with them."
            )
        return None
    lists = [values for values in (eval_set, eval_qid, eval_group) if values is not None]
    if len(lists) != 2 or any(len(values) != 1 for values in lists):
        raise RankPolicyError(
            "give one validation set with its queries: eval_set=[(Xv, yv)] and eval_qid=[qid] or eval_group=[sizes]."
        )
    if not isinstance(eval_set[0], tuple | list) or len(eval_set[0]) != 2:
        raise RankPolicyError("eval_set must hold one pair of features and labels: eval_set=[(Xv, yv)].")
    features, labels = eval_set[0]
    try:
        return from_arrays(
            _matrix(features),
            labels,
            qid=None if eval_qid is None else eval_qid[0],
            group=None if eval_group is None else eval_group[0],
            feature_names=_column_names(features),
        )
    except RankPolicyError as error:
        raise RankPolicyError(f"eval_set: {error}") from None


def with_groups(dataset: RankingDataset, groups: Groups, *, given_in_rows: bool) -> RankingDataset:
    """The dataset with protected groups: one value per row of the user's array, or what a function of the dataset gives."""
    values = np.asarray(groups(dataset) if callable(groups) else groups)
    if values.shape != (dataset.num_items,):
        raise RankPolicyError(f"groups must have one value per item, shape ({dataset.num_items},); got {values.shape}.")
    encode_groups(values)  # refuses missing ones
    return replace(dataset, groups=values[dataset.source_rows] if given_in_rows and not callable(groups) else values)


def dataset_to_rank(
    X: Any, qid: ArrayLike | None, group: ArrayLike | None, groups: Groups | None, *, needs_queries: bool
) -> RankingDataset:
    """The data to rank; rows may come without qid if scores do not depend on the other items of a query."""
    if isinstance(X, RankingDataset):
        _refuse_arrays_beside_dataset(None, qid, group)
        dataset = X
    elif _is_click_table(X):
        _refuse_arrays_beside_dataset(None, qid, group)
        dataset = _from_click_table(X, needs_clicks=False)
    else:
        dataset = _arrays_to_rank(X, qid, group, needs_queries=needs_queries)
    return dataset if groups is None else with_groups(dataset, groups, given_in_rows=dataset is not X)


def _arrays_to_rank(X: Any, qid: ArrayLike | None, group: ArrayLike | None, *, needs_queries: bool) -> RankingDataset:
    matrix = _matrix(X)
    if qid is None and group is None:
        if needs_queries:
            raise RankPolicyError(
                "which rows belong to one query must be known here: pass qid= (an id per row) or group= (sizes). "
                f"For a single query use group=[{len(matrix)}]."
            )
        group = np.full(len(matrix), 1)
    return from_arrays(matrix, qid=qid, group=group, feature_names=_column_names(X))


def check_features(
    dataset: RankingDataset,
    num_features: int,
    feature_names: Sequence[str] | None,
    *,
    what: str,
    ranker: str = "fit",
) -> None:
    """Refuse data whose columns are not those of the training data, in its order; names are compared if both sides have them."""
    if feature_names is not None and dataset.feature_names is not None:
        expected, came = list(feature_names), list(dataset.feature_names)
        if expected == came:
            return
        missing = [name for name in expected if name not in came]
        extra = [name for name in came if name not in expected]
        differ = "; ".join(
            f"{kind} {', '.join(names[:5])}" for kind, names in (("without", missing), ("with", extra)) if names
        )
        raise RankPolicyError(
            f"{what} must have the {num_features} feature columns of the training data, in its order; "
            f"it comes {differ or 'in another order'}. Select them: frame[{expected!r:.60}]."
        )
    if dataset.num_features != num_features:
        raise RankPolicyError(
            f"{what} must have the {num_features} features of the training data; it has {dataset.num_features}. "
            f"Pass the same columns; sparse files: read_letor(path, num_features={num_features}). "
            f"(X has {dataset.num_features} features, but {ranker} is expecting {num_features} features as input.)"
        )


def check_kind_of_data(dataset: RankingDataset, *, reads_texts: bool, what: str) -> None:
    """Refuse data without texts if the ranker reads texts, and data without features if it reads features."""
    if reads_texts and dataset.texts is None:
        raise RankPolicyError(
            f"this ranker reads texts; {what} has {dataset.num_features} features and no texts. "
            "Pass a dataset of texts (from_texts, read_question_answering, read_click_table), a frame with columns query_text and "
            "item_text, or use rank_texts(query, items)."
        )
    if not reads_texts and dataset.num_features == 0:
        raise RankPolicyError(
            f"this ranker reads features; {what} has none"
            + (
                ", only texts. Choose a text model, such as model='mcan'."
                if dataset.texts is not None
                else f": 0 feature(s) (shape=({dataset.num_items}, 0)) while a minimum of 1 is required."
            )
        )


def _is_click_table(X: Any) -> bool:
    """Whether this is a frame of texts with one row per item."""
    from rankpolicy.data.click_table.table import is_click_table

    return is_click_table(list(getattr(X, "columns", ())))


def _from_click_table(frame: Any, *, needs_clicks: bool = True) -> RankingDataset:
    from rankpolicy.data.click_table.table import from_click_table

    return from_click_table(frame, needs_clicks=needs_clicks)


def _matrix(X: Any) -> Any:
    """A matrix from a frame, an array or a sparse matrix."""
    if hasattr(X, "to_numpy"):
        _check_columns(X)
        return X.to_numpy()
    try:
        matrix = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    except ValueError:
        raise RankPolicyError("features must be a matrix (items, features); got rows of different lengths.") from None
    if matrix.ndim == 0:
        raise RankPolicyError(
            f"features must be a matrix (items, features), a frame or a RankingDataset; got {type(X).__name__}. "
            "Files are read with read_letor or read_parquet."
        )
    return matrix


def _check_columns(frame: Any) -> None:
    """Refuse a frame with a column that does not hold numbers, and name the column."""
    for name in getattr(frame, "columns", ()):
        values = frame[name].to_numpy()
        try:
            # Numbers may come as objects, such as pandas' nullable ones.
            is_number = values.dtype.kind in "iufb" or (
                values.dtype.kind == "O" and values.astype(np.float32) is not None
            )
        except (TypeError, ValueError):
            is_number = False
        if not is_number:
            raise RankPolicyError(
                f"features must be numbers; column {name!r} holds {frame[name].dtype}. Encode it as numbers, or leave it out."
            )


def _column_names(X: Any) -> list[str] | None:
    """The column names of a frame; None without names, or if they are the numbers that pandas makes up."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def _refuse_arrays_beside_dataset(y: Any, qid: Any, group: Any) -> None:
    if y is not None or qid is not None or group is not None:
        raise RankPolicyError(
            "a RankingDataset or a click table knows its labels and queries: pass no y, qid or group beside it."
        )


def num_groups_of(dataset: RankingDataset, *, fairness: str) -> int:
    """How many protected groups the items have; fairness between groups needs at least two."""
    num_groups = 0 if dataset.groups is None else len(encode_groups(dataset.groups).names)
    if fairness == "group" and num_groups < 2:
        raise RankPolicyError(
            "fairness='group' needs at least two protected groups in training and validation data: pass protected= (one value per row), "
            f"or give the datasets a group column; got {num_groups or 'none'}."
        )
    return num_groups
