"""Turns what users give to a ranker (arrays, frames, click tables, datasets) into a RankingDataset, and checks it."""

from __future__ import annotations

import warnings
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


def training_dataset(
    X: Any,
    y: str | ArrayLike | None,
    qid: str | ArrayLike | None,
    group: ArrayLike | None,
    *,
    feature_names: Sequence[str] | None = None,
    categorical: Collection[str] = (),
) -> RankingDataset:
    """Data with labels: a dataset as it is, or one made from arrays, a frame (of which ``feature_names`` are read) or a click table.

    Text in the columns ``categorical`` is read as categories.
    """
    if isinstance(X, RankingDataset):
        _refuse_arrays_beside_dataset(y, qid, group)
        return X
    if _is_click_table(X):
        _refuse_arrays_beside_dataset(y, qid, group)
        return _from_click_table(X)
    if y is None:
        raise RankPolicyError(
            "fit needs labels: fit(X, y, qid=...) with arrays or names of columns of a frame, a RankingDataset that holds them, or a click "
            "table, a frame with the columns query_text, item_text and clicked. fit(X) requires y to be passed, but the target y is None."
        )
    return dataset_of_rows(X, y, qid=qid, group=group, features=feature_names, categorical=categorical)


def _validation_dataset(
    valid: Any,
    eval_set: Sequence[tuple[Any, ArrayLike]] | None,
    eval_qid: Sequence[ArrayLike] | None,
    eval_group: Sequence[ArrayLike] | None,
    *,
    y: Any = None,
    qid: Any = None,
    feature_names: Sequence[str] | None = None,
    categorical: Collection[str] = (),
) -> RankingDataset | None:
    """The validation data, from ``valid`` or from the lists that LightGBM and XGBoost take; None without any."""
    if valid is not None:
        if eval_set is not None:
            raise RankPolicyError("pass the validation data once: valid= or eval_set=, not both.")
        if isinstance(valid, RankingDataset):
            return valid
        if is_frame(valid) and isinstance(y, str) and isinstance(qid, str):
            columns = _columns_to_read(valid, feature_names, what="validation data")
            return dataset_of_rows(valid, y, qid=qid, features=columns, categorical=categorical)
        if not _is_click_table(valid):
            raise RankPolicyError(
                f"valid must be a RankingDataset; got {type(valid).__name__}. Arrays go into eval_set=[(Xv, yv)]; a frame may be given "
                "where y and qid are names of its columns."
            )
        return _from_click_table(valid)
    if eval_set is None:
        if eval_qid is not None or eval_group is not None:
            raise RankPolicyError(
                "eval_qid and eval_group are the queries of eval_set; give eval_set=[(Xv, yv)] with them."
            )
        return None
    lists = [values for values in (eval_set, eval_qid, eval_group) if values is not None]
    if not all(isinstance(values, list | tuple) for values in lists):
        raise RankPolicyError("eval_set, eval_qid and eval_group must be lists: eval_set=[(Xv, yv)], eval_qid=[qid].")
    if len(lists) != 2 or any(len(values) != 1 for values in lists):
        raise RankPolicyError(
            "give one validation set with its queries: eval_set=[(Xv, yv)] and eval_qid=[qid] or eval_group=[sizes]."
        )
    if not isinstance(eval_set[0], tuple | list) or len(eval_set[0]) != 2:
        raise RankPolicyError("eval_set must hold one pair of features and labels: eval_set=[(Xv, yv)].")
    features, labels = eval_set[0]
    try:
        return dataset_of_rows(
            features,
            labels,
            qid=None if eval_qid is None else eval_qid[0],
            group=None if eval_group is None else eval_group[0],
            features=_columns_to_read(features, feature_names, what="it"),
            categorical=categorical,
        )
    except RankPolicyError as error:
        raise error.within("eval_set") from None


def named_eval_sets(
    valid: Any,
    eval_set: Any,
    eval_qid: Any,
    eval_group: Any,
    eval_names: Sequence[str] | None,
    *,
    y: Any = None,
    qid: Any = None,
    feature_names: Sequence[str] | None = None,
    categorical: Collection[str] = (),
) -> dict[str, RankingDataset]:
    """The validation sets by name, in order: from ``valid``, or from the lists that LightGBM and XGBoost take.

    Parameters
    ----------
    valid
        One validation set.
    eval_set, eval_qid, eval_group
        Lists of equal length: pairs of features and labels, and the queries of each of them; or one pair, and its queries.
    eval_names
        Their names; None: valid_0, valid_1, ...
    y, qid
        Names of the columns of labels and queries, where ``valid`` is a frame.
    feature_names
        Feature columns of the training data, which frames are matched to.
    categorical
        Those of them that hold categories.
    """
    if isinstance(eval_set, tuple) and len(eval_set) == 2 and not isinstance(eval_set[0], tuple):
        eval_set, eval_qid, eval_group = [eval_set], _as_list_of_one(eval_qid), _as_list_of_one(eval_group)
    if not all(values is None or isinstance(values, list | tuple) for values in (eval_set, eval_qid, eval_group)):
        raise RankPolicyError("eval_set, eval_qid and eval_group must be lists: eval_set=[(Xv, yv)], eval_qid=[qid].")
    num_sets = 1 if eval_set is None else len(eval_set)
    if valid is not None or num_sets <= 1:
        first = _validation_dataset(
            valid, eval_set, eval_qid, eval_group, y=y, qid=qid, feature_names=feature_names, categorical=categorical
        )
        sets = [] if first is None else [first]
    else:
        lists = [values for values in (eval_qid, eval_group) if values is not None]
        if len(lists) != 1 or len(lists[0]) != num_sets:
            raise RankPolicyError(
                f"give every validation set its queries: eval_set has {num_sets} pairs, so eval_qid or eval_group must have {num_sets} "
                f"entries; got {' and '.join(str(len(values)) for values in lists) or 'none'}."
            )
        sets = []
        for number in range(num_sets):
            qid, group = ([values[number]] if values is not None else None for values in (eval_qid, eval_group))
            dataset = _validation_dataset(
                None, [eval_set[number]], qid, group, feature_names=feature_names, categorical=categorical
            )
            assert dataset is not None
            sets.append(dataset)
    return dict(zip(_names_of_eval_sets(eval_names, len(sets)), sets, strict=True))


def _as_list_of_one(values: Any) -> Any:
    """The queries of a bare pair (Xv, yv), in a list if they are not yet."""
    is_list = (
        isinstance(values, list | tuple) and len(values) == 1 and (isinstance(values[0], str) or np.ndim(values[0]) > 0)
    )
    return values if values is None or is_list else [values]


def _names_of_eval_sets(given: Sequence[str] | None, num_sets: int) -> list[str]:
    if given is None:
        return [f"valid_{number}" for number in range(num_sets)]
    is_list = isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)
    if not is_list or len(given) != num_sets:
        raise RankPolicyError(
            f"eval_names must be a list of names, one for each of {num_sets} validation sets; got {given!r:.80}."
        )
    if len(set(given)) < num_sets or "training" in given:
        raise RankPolicyError(
            f"eval_names must differ from one another and from 'training', the curves of the training data; got {list(given)!r:.80}."
        )
    return list(given)


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
        _refuse_arrays_beside_dataset(None, qid, group)
        dataset = X
    elif _is_click_table(X):
        _refuse_arrays_beside_dataset(None, qid, group)
        dataset = _from_click_table(X, needs_clicks=False)
    else:
        if qid is None and group is None:
            num_rows = len(X) if is_frame(X) else matrix_of(X).shape[0]
            if needs_queries and not as_one_query:
                raise RankPolicyError(
                    "which rows belong to one query must be known here: pass qid= (an id per row) or group= (sizes). "
                    f"For a single query use group=[{num_rows}]."
                )
            group = [num_rows] if as_one_query else np.full(num_rows, 1)
        columns = _columns_to_read(X, feature_names, what="data to rank")
        dataset = dataset_of_rows(X, qid=qid, group=group, features=columns, categorical=categorical)
    return dataset if groups is None else with_groups(dataset, groups)


def _columns_to_read(X: Any, feature_names: Sequence[str] | None, *, what: str) -> list[str] | None:
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
        has = {name: place for place, name in enumerate(dataset.feature_names)}
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
    wanted, given = categories or {}, dataset.categories or {}
    if set(wanted) != set(given):
        name = sorted(set(wanted) ^ set(given))[0]
        kinds = ("categories", "numbers") if name in wanted else ("numbers", "categories")
        raise RankPolicyError(
            f"{what} must have the columns of the training data; there, {name!r} held {kinds[0]}, here it holds {kinds[1]}. "
            "Give it as a frame with columns of the same types."
        )
    return with_categories(dataset, wanted) if wanted else dataset


def _check_names(has: Sequence[str], wanted: Sequence[str], *, what: str) -> None:
    missing = [name for name in wanted if name not in has]
    if missing:
        others = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise RankPolicyError(
            f"{what} must have the {len(wanted)} feature columns of the training data, in any order; it has no "
            f"{', '.join(missing[:5])}{others}. It has {', '.join(has[:10])}{', ...' if len(has) > 10 else ''}."
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


def _is_click_table(X: Any) -> bool:
    """Whether this is a frame of texts with one row per item."""
    from rankpolicy.data.click_table.table import is_click_table

    return is_frame(X) and is_click_table(X.columns)


def _from_click_table(frame: Any, *, needs_clicks: bool = True) -> RankingDataset:
    from rankpolicy.data.click_table.table import from_click_table

    return from_click_table(frame, needs_clicks=needs_clicks)


def dense_blocks(X: Any, *, cells_per_block: int = 1 << 22) -> Iterator[NDArray[np.float32]]:
    """The rows of a sparse matrix as dense matrices, some at a time, so that memory does not grow with the number of rows."""
    rows = X.tocsr()
    step = max(1, cells_per_block // max(1, rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        yield rows[start : start + step].astype(np.float32).toarray()


def _refuse_arrays_beside_dataset(y: Any, qid: Any, group: Any) -> None:
    if y is not None or qid is not None or group is not None:
        raise RankPolicyError(
            "a RankingDataset or a click table knows its labels and queries: pass no y, qid or group beside it."
        )


def check_can_learn(
    train: RankingDataset, *, learns_from_single_items: bool, has_custom_reward: bool, compares_groups: bool
) -> None:
    """Refuse training data whose rankings are all equally good, or warn where a method can still learn from items one by one.

    Parameters
    ----------
    train
        The training data.
    learns_from_single_items
        Whether the method predicts labels item by item, so that labels may be equal within queries.
    has_custom_reward
        Whether a function of the user rewards rankings, which may differ whatever the labels are.
    compares_groups
        Whether the method makes rankings fair between protected groups.
    """
    if compares_groups and train.groups_by_query is not None and len(encode_groups(train.groups_by_query).names) < 2:
        raise RankPolicyError(
            f"fairness between protected groups needs two or more of them in the training data; all {train.num_items} items are in group "
            f"{train.groups_by_query[0]!s}. Is protected= the right column?"
        )
    lowest, highest = train.labels_by_query.min(), train.labels_by_query.max()
    if int(train.sizes.max()) < 2:
        problem = (
            f"no query has two items to rank: there are {train.num_queries} queries of one item"
            + (" (one sample only, n_samples=1)" if train.num_items == 1 else "")
            + ". Are qid and item id swapped? qid is the same for all items that are ranked together"
        )
    elif not has_custom_reward and not _some_labels_differ(train):
        problem = (
            f"no query has items of different labels (they go from {lowest:g} to {highest:g}), so all rankings are equally good. "
            "Check labels and qid"
        )
    else:
        return
    if not learns_from_single_items or lowest == highest:
        raise RankPolicyError(f"nothing can be learned: {problem}.")
    warnings.warn(f"{problem}. Only differences between queries are learned.", stacklevel=4)


def _some_labels_differ(dataset: RankingDataset, queries_at_once: int = 1 << 15) -> bool:
    """Whether a query has items of different labels; labels on disk are read up to the first such query."""
    for first in range(0, dataset.num_queries, queries_at_once):
        starts = dataset.query_offsets[first : first + queries_at_once + 1]
        labels = dataset.labels_by_query[starts[0] : starts[-1]]
        lowest, highest = (f.reduceat(labels, starts[:-1] - starts[0]) for f in (np.minimum, np.maximum))
        if (lowest < highest).any():
            return True
    return False


def num_groups_of(dataset: RankingDataset, *, fairness: str) -> int:
    """How many protected groups the items have; fairness between groups needs at least two."""
    num_groups = 0 if dataset.groups_by_query is None else len(encode_groups(dataset.groups_by_query).names)
    if fairness == "group" and num_groups < 2:
        raise RankPolicyError(
            "fairness='group' needs at least two protected groups in training and validation data: pass protected= (one value per row), "
            f"or give the datasets a group column; got {num_groups or 'none'}."
        )
    return num_groups
