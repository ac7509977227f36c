"""Turns what users give to a ranker (arrays, frames, click tables, datasets) into a RankingDataset, and checks it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.categories import with_categories
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.matrix_or_frame import column_names, dataset_of_rows, is_frame, matrix_of
from rankpolicy.declarations.arguments import as_array
from rankpolicy.fairness.groups import encode_groups
from rankpolicy.types import RankPolicyError

# Protected groups: one value per row, or a function of the dataset that gives them.
Groups = ArrayLike | Callable[[RankingDataset], ArrayLike]


def with_groups(dataset: RankingDataset, groups: Groups) -> RankingDataset:
    """The dataset with protected groups: one value per row that it was made from, or what a function of the dataset gives."""
    if isinstance(groups, type):
        raise RankPolicyError(f"protected must be one value per row, or a function of the dataset; got {groups!r}.")
    values = as_array("protected", groups(dataset) if callable(groups) else groups)
    if values.shape != (dataset.num_items,):
        raise RankPolicyError(f"groups must have one value per item, shape ({dataset.num_items},); got {values.shape}.")
    encode_groups(values)  # refuses missing ones
    return replace(dataset, groups_by_query=dataset.in_query_order(values))


def dataset_to_rank(
    X: Any,
    qid: str | ArrayLike | None,
    group: ArrayLike | None,
    groups: Groups | None,
    *,
    needs_queries: bool,
    as_one_query: bool = False,
    feature_names: Sequence[str] | None = None,
    categorical: Collection[str] = (),
) -> RankingDataset:
    """The data to rank; of a frame only the columns ``feature_names`` are read, text in ``categorical`` ones as categories.

    Rows without queries are all of one query (``as_one_query``), or each alone if scores do not depend on the other items of a query.
    """
    if isinstance(X, RankingDataset):
        refuse_arrays_with_dataset(None, qid, group)
        dataset = X
    elif is_click_table(X):
        refuse_arrays_with_dataset(None, qid, group)
        dataset = from_click_table(X, needs_clicks=False)
    else:
        if qid is None and group is None:
            num_rows = len(X) if is_frame(X) else matrix_of(X).shape[0]
            if needs_queries and not as_one_query:
                raise RankPolicyError(
                    "which rows belong to one query must be known here: pass qid= (an id per row) or group= (sizes). "
                    f"For a single query use group=[{num_rows}]."
                )
            group = [num_rows] if as_one_query else np.full(num_rows, 1)
        columns = columns_to_read(X, feature_names, what="data to rank")
        dataset = dataset_of_rows(X, qid=qid, group=group, features=columns, categorical=categorical)
    return dataset if groups is None else with_groups(dataset, groups)


def columns_to_read(X: Any, feature_names: Sequence[str] | None, *, what: str) -> list[str] | None:
    """The feature columns of the training data that are to be read from a frame; None where either has no names."""
    names = column_names(X)
    if feature_names is None or names is None:
        return None
    _check_names(names, feature_names, what=what)
    return list(feature_names)


def matched_features(
    dataset: RankingDataset,
    num_features: int,
    feature_names: Sequence[str] | None,
    categories: Mapping[str, Sequence[str]] | None,
    *,
    what: str,
    ranker: str = "fit",
) -> RankingDataset:
    """The data with the feature columns of the training data: by name where both sides have names, else by their number.

    Columns may come in another order and beside others. Categories that the training data did not have become missing values.
    """
    if feature_names is not None and dataset.feature_names is not None:
        has = {name: column for column, name in enumerate(dataset.feature_names)}
        _check_names(list(has), feature_names, what=what)
        if tuple(feature_names) != dataset.feature_names:
            dataset = replace(
                dataset,
                features_by_query=dataset.features_by_query[:, [has[name] for name in feature_names]],
                feature_names=tuple(feature_names),
                categories={k: v for k, v in (dataset.categories or {}).items() if k in feature_names} or None,
            )
    if dataset.num_features != num_features:
        raise RankPolicyError(
            f"{what} must have the {num_features} features of the training data; it has {dataset.num_features}. "
            f"(X has {dataset.num_features} features, but {ranker} is expecting {num_features} features as input.)",
            python=f"Pass the same columns; sparse files: read_letor(path, num_features={num_features}).",
            command_line="Give a file with the same columns.",
        )
    trained_categories, data_categories = categories or {}, dataset.categories or {}
    if set(trained_categories) != set(data_categories):
        name = sorted(set(trained_categories) ^ set(data_categories))[0]
        kinds = ("categories", "numbers") if name in trained_categories else ("numbers", "categories")
        raise RankPolicyError(
            f"{what} must have the columns of the training data; there, {name!r} held {kinds[0]}, here it holds {kinds[1]}. "
            "Give it as a frame with columns of the same types."
        )
    return with_categories(dataset, trained_categories) if trained_categories else dataset


def _check_names(has: Sequence[str], wanted: Sequence[str], *, what: str) -> None:
    missing = [name for name in wanted if name not in has]
    if missing:
        further = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise RankPolicyError(
            f"{what} must have the {len(wanted)} feature columns of the training data, in any order; it has no "
            f"{', '.join(missing[:5])}{further}. It has {', '.join(has[:10])}{', ...' if len(has) > 10 else ''}."
        )


def check_kind_of_data(dataset: RankingDataset, *, reads_texts: bool, what: str) -> None:
    """Refuse data without texts if the ranker reads texts, and data without features if it reads features."""
    if reads_texts and dataset.texts_by_query is None:
        raise RankPolicyError(
            f"this ranker reads texts; {what} has {dataset.num_features} features and no texts. "
            "Pass a dataset of texts (from_texts, read_question_answering, read_click_table), a frame with columns query_text and "
            "item_text, or use rank_texts(query, items)."
        )
    if not reads_texts and dataset.num_features == 0:
        raise RankPolicyError(
            f"this ranker reads features; {what} has none"
            + (
                ", only texts."
                if dataset.texts_by_query is not None
                else f": 0 feature(s) (shape=({dataset.num_items}, 0)) while a minimum of 1 is required."
            ),
            python="Choose a text model, such as model='mcan'." if dataset.texts_by_query is not None else "",
            command_line="Choose a text model, such as --set model=mcan." if dataset.texts_by_query is not None else "",
        )


def is_click_table(X: Any) -> bool:
    """Whether this is a frame of texts with one row per item."""
    from rankpolicy.data.click_table.table import is_click_table

    return is_frame(X) and is_click_table(X.columns)


def from_click_table(frame: Any, *, needs_clicks: bool = True) -> RankingDataset:
    from rankpolicy.data.click_table.table import from_click_table

    return from_click_table(frame, needs_clicks=needs_clicks)


def dense_blocks(X: Any, *, cells_per_block: int = 1 << 22) -> Iterator[NDArray[np.float32]]:
    """The rows of a sparse matrix as dense matrices, some at a time, so that memory does not grow with the number of rows."""
    rows = X.tocsr()
    step = max(1, cells_per_block // max(1, rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        yield rows[start : start + step].astype(np.float32).toarray()


def refuse_arrays_with_dataset(y: Any, qid: Any, group: Any) -> None:
    if y is not None or qid is not None or group is not None:
        raise RankPolicyError(
            "a RankingDataset or a click table knows its labels and queries: pass no y, qid or group beside it."
        )


def num_groups_of(dataset: RankingDataset, *, fairness: str) -> int:
    """How many protected groups the items have; fairness between groups needs at least two."""
    num_groups = 0 if dataset.groups_by_query is None else len(encode_groups(dataset.groups_by_query).names)
    if fairness == "group" and num_groups < 2:
        raise RankPolicyError(
            "fairness='group' needs at least two protected groups in training and validation data: pass protected= (one value per row), "
            f"or give the datasets a group column; got {num_groups or 'none'}."
        )
    return num_groups
