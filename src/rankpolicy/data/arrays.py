"""Datasets made from arrays, and from other datasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.click_evidence import LabelKind
from rankpolicy.data.click_table.list_columns import joined_columns, joined_shown
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.sparse import is_sparse, joined_features, sparse_features
from rankpolicy.data.texts.texts import joined
from rankpolicy.declarations.arguments import as_array, checked_kinds, without_mask
from rankpolicy.types import RankPolicyError, RankPolicyTypeError

# How times become numbers, for error messages.
DATE_ADVICE = {
    "date": "Give the days since a date: (column - column.min()) / np.timedelta64(1, 'D').",
    "duration": "Give the days: column / np.timedelta64(1, 'D').",
}


@checked_kinds
def from_arrays(
    features: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    item_ids: ArrayLike | None = None,
    protected: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    label_kind: LabelKind = "grades",
) -> RankingDataset:
    """A dataset from a feature matrix and the query of each row.

    Parameters
    ----------
    features
        One row per item, shape (items, features); NaN is a missing value. A sparse matrix of scipy stays sparse: trees read it as it is,
        networks some rows at a time.
    labels
        One number per row, 0 or more; None for new data to be ranked, which has ``label_kind`` "none".
    qid
        The query id of each row, in any order. Give either ``qid`` or ``group``.
    group
        The number of rows of each query, where the rows of a query follow one another.
    item_ids
        An id per row, unique within its query.
    protected
        The protected group of each row, for fair rankers and fairness metrics.
    feature_names
        Names of the columns.
    label_kind
        What the labels mean: "grades", "clicks" (0 or 1) or "relevances" (estimated from clicks).
    """
    matrix = as_matrix(features)
    if matrix.ndim != 2:
        raise RankPolicyError(
            f"features must be a matrix (items, features); got {matrix.ndim} dimension(s), shape {matrix.shape}. "
            "Reshape your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one item."
        )
    num_items = matrix.shape[0]
    check_one_of_qid_and_group(qid, group, num_items)
    if group is not None:
        sizes = checked_sizes(group, num_items)
        query_of_row = np.repeat(np.arange(len(sizes)), sizes)
        query_ids = np.arange(len(sizes)).astype(str)
    else:
        query_of_row, query_ids = numbered_by_appearance(as_array("qid", qid), num_items)

    def checked(name: str, values: ArrayLike | None, dtype: Any = None) -> NDArray[Any] | None:
        if values is None:
            return None
        array = as_array(name, values)
        if array.shape != (num_items,):
            raise RankPolicyError(
                f"{name} must have one value per row of features, shape ({num_items},); got {array.shape}."
            )
        if name != "labels" and (missing := int((array != array).sum())):  # masked values are NaN by now
            raise RankPolicyError(f"{name} must have a value for every row; {missing} of {num_items} are missing.")
        return array if dtype is None else array.astype(dtype)

    given_labels = np.zeros(num_items, np.float32) if labels is None else labels
    return from_query_numbers(
        sparse_features(matrix) if is_sparse(matrix) else as_float32("features", matrix),
        as_float32("labels", checked("labels", given_labels)),
        query_of_row,
        query_ids=query_ids,
        item_ids=checked("item_ids", item_ids, dtype=str),
        groups=checked("protected", protected),
        feature_names=None if feature_names is None else tuple(map(str, feature_names)),
        label_kind="none" if labels is None and label_kind == "grades" else label_kind,
    )


def check_one_of_qid_and_group(qid: Any, group: Any, num_items: int) -> None:
    """Refuse rows whose queries are given twice or not at all."""
    if (qid is None) == (group is None):
        raise RankPolicyError(
            "pass exactly one of qid (a query id per row) and group (the number of rows of each query); "
            f"got {'both' if qid is not None else 'neither'}. For a single query use group=[{num_items}]."
        )


def from_query_numbers(
    features: NDArray[np.float32],
    labels: NDArray[np.float32],
    query_of_row: NDArray[np.int64],
    *,
    query_ids: NDArray[Any],
    item_ids: NDArray[Any] | None = None,
    groups: NDArray[Any] | None = None,
    feature_names: tuple[str, ...] | None = None,
    label_kind: LabelKind = "grades",
) -> RankingDataset:
    """A dataset from the number of each row's query, 0 to len(query_ids) - 1; rows are sorted by query."""
    in_order = bool((np.diff(query_of_row) >= 0).all())
    order = np.arange(len(labels)) if in_order else np.argsort(query_of_row, kind="stable")

    def arranged(values: Any) -> Any:
        return values if in_order or values is None else values[order]

    return RankingDataset(
        features_by_query=arranged(features),
        labels_by_query=arranged(labels),
        query_offsets=np.concatenate([[0], np.cumsum(np.bincount(query_of_row, minlength=len(query_ids)))]),
        query_ids=query_ids,
        source_rows_by_query=order,
        item_ids_by_query=arranged(item_ids),
        groups_by_query=arranged(groups),
        feature_names=feature_names,
        label_kind=label_kind,
    )


@checked_kinds
def concatenate(datasets: Sequence[RankingDataset]) -> RankingDataset:
    """All queries of several datasets, one after the other; a query id that occurs twice stays two queries.

    Its rows are those of the first dataset, then those of the second, and so on.

    Parameters
    ----------
    datasets
        Datasets with the same features and the same kind of labels. Optional parts (item ids, weights, ...) must be in all or none.
    """
    if not all(isinstance(dataset, RankingDataset) for dataset in datasets):
        raise RankPolicyError(f"datasets must be a list of RankingDataset; got {datasets!r:.80}.")
    if len(datasets) == 0:
        raise RankPolicyError("concatenate needs at least one dataset; got an empty list.")
    named = [dataset for dataset in datasets if dataset.feature_names is not None]
    _check_same_columns(datasets, named)
    categories = {
        name: tuple(sorted({member for dataset in datasets for member in (dataset.categories or {}).get(name, ())}))
        for name in datasets[0].categories or {}
    }
    if categories:
        from rankpolicy.data.categories import with_categories

        datasets = [with_categories(dataset, categories) for dataset in datasets]
    starts = np.cumsum([0] + [dataset.num_items for dataset in datasets])
    # A part of a dataset has rows beyond its number of items.
    row_starts = np.cumsum([0] + [int(dataset.source_rows_by_query.max()) + 1 for dataset in datasets])

    def optional(name: str, join: Callable[[list[Any]], Any] = np.concatenate) -> Any:
        values = [getattr(dataset, name) for dataset in datasets]
        present = [value is not None for value in values]
        if any(present) and not all(present):
            raise RankPolicyError(
                f"either all or none of the datasets to concatenate must have {name.removesuffix('_by_query')}."
            )
        return join(values) if all(present) else None

    return RankingDataset(
        features_by_query=joined_features([dataset.features_by_query for dataset in datasets]),
        labels_by_query=np.concatenate([dataset.labels_by_query for dataset in datasets]),
        query_offsets=np.concatenate(
            [[0], *(d.query_offsets[1:] + start for d, start in zip(datasets, starts, strict=False))]
        ),
        query_ids=np.concatenate([dataset.query_ids for dataset in datasets]),
        source_rows_by_query=np.concatenate(
            [d.source_rows_by_query + start for d, start in zip(datasets, row_starts, strict=False)]
        ),
        item_ids_by_query=optional("item_ids_by_query"),
        groups_by_query=optional("groups_by_query"),
        feature_names=named[0].feature_names if named else None,
        texts_by_query=optional("texts_by_query", joined),
        side_by_query=optional("side_by_query", joined_columns),
        shown_by_query=optional("shown_by_query", joined_shown),
        query_weights=optional("query_weights"),
        label_kind=datasets[0].label_kind,
        categories=categories or None,
    )


def _check_same_columns(datasets: Sequence[RankingDataset], named: list[RankingDataset]) -> None:
    """Refuse to concatenate datasets whose features or labels mean different things."""
    widths = sorted({dataset.num_features for dataset in datasets})
    if len(widths) > 1:
        raise RankPolicyError(f"datasets to concatenate must have the same number of features; got {widths}.")
    for dataset in named:
        if dataset.feature_names != named[0].feature_names:
            first, other = map(", ".join, (named[0].feature_names or (), dataset.feature_names or ()))
            raise RankPolicyError(
                f"datasets to concatenate must have the same features in the same order; got {first:.80} and {other:.80}."
            )
    kinds = sorted({dataset.label_kind for dataset in datasets})
    if len(kinds) > 1:
        raise RankPolicyError(
            f"datasets to concatenate must have labels of one kind; got {' and '.join(kinds)}. "
            "Make both from clicks in the same way, or learn from one of them."
        )
    if any(set(dataset.categories or {}) != set(datasets[0].categories or {}) for dataset in datasets):
        raise RankPolicyError("datasets to concatenate must have the same categorical columns.")


def as_matrix(features: Any) -> Any:
    """Features as an array; a sparse matrix as it is."""
    try:
        return features if is_sparse(features) else np.asarray(without_mask(features))
    except ValueError:
        raise RankPolicyError("features must be a matrix (items, features); got rows of different lengths.") from None
    except (TypeError, RuntimeError, OverflowError) as error:
        raise RankPolicyError(
            f"features must be a matrix (items, features) of numbers; got {type(features).__name__} ({error})."
        ) from None


def checked_sizes(group: ArrayLike, num_items: int) -> NDArray[np.int64]:
    """The number of items of each query (queries,)."""
    sizes = as_array("group", group)
    if sizes.ndim != 1 or (sizes.size and not np.issubdtype(sizes.dtype, np.integer)):
        raise RankPolicyError(f"group must be a list of whole numbers, the items of each query; got {group!r:.80}.")
    if (sizes < 1).any():
        raise RankPolicyError(
            f"every query needs at least one item; group holds {int(sizes.min())} at index {int(sizes.argmin())}."
        )
    if sizes.sum() != num_items:
        raise RankPolicyError(
            f"the sizes in group must add up to the number of rows, {num_items}; they add up to {int(sizes.sum())}. "
            "A query id per row goes into qid=."
        )
    return sizes.astype(np.int64)


def as_float32(name: str, values: Any) -> NDArray[np.float32]:
    """A copy of the values as float32; NaN where an object is a missing value."""
    values = np.asarray(values)
    kind = values.dtype.kind
    if kind == "c":
        raise RankPolicyError(
            f"{name} must be real numbers. Complex data not supported; pass their real parts or sizes."
        )
    time_kind = {"M": "date", "m": "duration"}.get(kind)
    if kind == "O":
        # Before numpy converts them: it makes seconds of its dates, and -9.2e18 of NaT.
        values = values.copy()
        for index, value in np.ndenumerate(values):
            if _is_missing(value):
                values[index] = np.nan
            elif isinstance(value, date | timedelta | np.datetime64 | np.timedelta64):
                time_kind = "duration" if isinstance(value, timedelta | np.timedelta64) else "date"
    if time_kind is not None:
        raise RankPolicyTypeError(f"{name} must be numbers; got {values.dtype} values. {DATE_ADVICE[time_kind]}")
    try:
        # Values beyond float32 become inf here and are reported by the check that follows.
        with np.errstate(over="ignore"):
            # A copy: a dataset is checked once, so what its maker does to the array afterwards must not reach it.
            return np.array(values, dtype=np.float32, order="C")
    except (TypeError, ValueError) as error:
        raised = RankPolicyTypeError if isinstance(error, TypeError) else RankPolicyError
        advice = " Columns of a frame become numbers by pd.to_numeric(column)." if kind == "O" else ""
        raise raised(f"{name} must be numbers; got {values.dtype} values ({error}).{advice}") from None


def _is_missing(value: Any) -> bool:
    return not isinstance(value, str) and str(value) in ("None", "nan", "NaT", "<NA>")  # of Python, numpy and pandas


def numbered_by_appearance(qid: NDArray[Any], num_items: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Number query ids 0, 1, ... in order of first appearance: number of each row, id of each number."""
    if qid.shape != (num_items,):
        raise RankPolicyError(
            f"qid must have one query id per row of features, shape ({num_items},); got {qid.shape}. "
            "Sizes of consecutive queries go into group=."
        )
    if qid.dtype.kind == "O":
        missing = [row for row, name in enumerate(qid.tolist()) if _is_missing(name)]
        if missing:
            raise RankPolicyError(
                f"qid must hold an id for every row; row {missing[0]} has {qid[missing[0]]!r}. Fill it or drop the row."
            )
        qid = qid.astype(str)  # ids of mixed types cannot be sorted
    if qid.dtype.kind == "f" and not (np.isfinite(qid).all() and (qid == np.round(qid)).all()):
        raise RankPolicyError("qid must hold ids (integers or strings), not fractions or NaN.")
    ids, first, number = np.unique(qid, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first, kind="stable")
    rank_of_id = np.empty(len(ids), np.int64)
    rank_of_id[by_appearance] = np.arange(len(ids))
    names = ids[by_appearance]
    return rank_of_id[number], (names.astype(np.int64) if qid.dtype.kind == "f" else names).astype(str)
