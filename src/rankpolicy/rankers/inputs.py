"""Turns what users give to a ranker (arrays, frames, click tables, datasets) into a RankingDataset, and checks it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import HAS_QUERIES, RankingDataset
from rankpolicy.data.formats.frames import column_names, dataset_of_rows, is_frame, matrix_of
from rankpolicy.declarations.arguments import as_array, as_float64
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
        if qid is not None or group is not None:
            raise RankPolicyError(HAS_QUERIES)
        dataset = X
    elif is_click_table(X):
        if qid is not None or group is not None:
            raise RankPolicyError(HAS_QUERIES)
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
    check_columns(names, feature_names, what=what)
    return list(feature_names)


def check_columns(has: Sequence[str], wanted: Sequence[str], *, what: str) -> None:
    missing = [name for name in wanted if name not in has]
    if missing:
        further = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise RankPolicyError(
            f"{what} must have the {len(wanted)} feature columns of the training data, in any order; it has no "
            f"{', '.join(missing[:5])}{further}. It has {', '.join(has[:10])}{', ...' if len(has) > 10 else ''}."
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


def num_groups_of(dataset: RankingDataset, *, fairness: str) -> int:
    """How many protected groups the items have; fairness between groups needs at least two."""
    num_groups = 0 if dataset.groups_by_query is None else len(encode_groups(dataset.groups_by_query).names)
    if fairness == "group" and num_groups < 2:
        raise RankPolicyError(
            "fairness='group' needs at least two protected groups in training and validation data: pass protected= (one value per row), "
            f"or give the datasets a group column; got {num_groups or 'none'}."
        )
    return num_groups


def datasets_of_lists(eval_set: Any, eval_qid: Any, eval_group: Any, train: RankingDataset) -> list[RankingDataset]:
    """The datasets of LightGBM's lists: pairs (Xv, yv), or one bare pair, and the queries of each."""
    if eval_set is None:
        if eval_qid is not None or eval_group is not None:
            raise RankPolicyError(
                "eval_qid and eval_group are the queries of eval_set; give eval_set=[(Xv, yv)] with them."
            )
        return []
    if isinstance(eval_set, tuple) and len(eval_set) == 2 and not isinstance(eval_set[0], tuple):
        eval_set, eval_qid, eval_group = [eval_set], _as_list_of_one(eval_qid), _as_list_of_one(eval_group)
    queries = {"qid": eval_qid, "group": eval_group}
    lists = {name: values for name, values in queries.items() if values is not None}
    if not all(isinstance(values, list | tuple) for values in (eval_set, *lists.values())):
        raise RankPolicyError("eval_set, eval_qid and eval_group must be lists: eval_set=[(Xv, yv)], eval_qid=[qid].")
    if len(lists) != 1 or any(len(values) != len(eval_set) for values in lists.values()):
        lengths = " and ".join(str(len(values)) for values in lists.values()) or "none"
        raise RankPolicyError(
            "give one validation set with its queries, eval_set=[(Xv, yv)] and eval_qid=[qid] or eval_group=[sizes], or every one its own: "
            f"eval_set has {len(eval_set)} pairs, so eval_qid or eval_group must have {len(eval_set)} entries; got {lengths}."
        )
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in eval_set):
        raise RankPolicyError(
            "eval_set must hold one pair of features and labels per validation set: eval_set=[(Xv, yv)]."
        )
    ((name, values),) = lists.items()
    try:
        return [
            dataset_of_rows(
                features,
                labels,
                **{name: value},
                features=columns_to_read(features, train.feature_names, what="it"),
                categorical=train.categories or (),
            )
            for (features, labels), value in zip(eval_set, values, strict=True)
        ]
    except RankPolicyError as error:
        raise error.within("eval_set") from None


def _as_list_of_one(values: Any) -> Any:
    """The queries of a bare pair (Xv, yv), in a list if they are not yet."""
    is_list = (
        isinstance(values, list | tuple) and len(values) == 1 and (isinstance(values[0], str) or np.ndim(values[0]) > 0)
    )
    return values if values is None or is_list else [values]


def checked_set_names(eval_names: Sequence[str], num_sets: int) -> Sequence[str]:
    is_list = isinstance(eval_names, list | tuple) and all(isinstance(name, str) for name in eval_names)
    if not is_list or len(eval_names) != num_sets:
        raise RankPolicyError(
            f"eval_names must be a list of names, one for each of {num_sets} validation sets; got {eval_names!r:.80}."
        )
    if len(set(eval_names)) < num_sets or "training" in eval_names:
        raise RankPolicyError(
            f"eval_names must differ from one another and from 'training', the curves of the training data; got {list(eval_names)!r:.80}."
        )
    return eval_names


def with_sample_weight(dataset: RankingDataset, sample_weight: ArrayLike) -> RankingDataset:
    """The dataset with these query weights."""
    if dataset.query_weights is not None:
        raise RankPolicyError(
            "sample_weight must not be given for data that has query weights already, such as weighted clicks. Leave it out."
        )
    weights = as_float64("sample_weight", sample_weight)
    if not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
        raise RankPolicyError(
            f"sample_weight must be finite, 0 or more and not all 0 (all zero weights leave nothing to learn from); got {weights!r:.80}."
        )
    if weights.shape == (dataset.num_items,):
        weights = _weights_of_queries(dataset.in_query_order(weights), dataset)
    elif weights.shape != (dataset.num_queries,):
        raise RankPolicyError(
            f"sample_weight must have one value per query, shape ({dataset.num_queries},), or one per row, shape "
            f"({dataset.num_items},); got {weights.shape}."
        )
    return replace(dataset, query_weights=weights)


def _weights_of_queries(weights: NDArray[np.float64], dataset: RankingDataset) -> NDArray[Any]:
    first = weights[dataset.query_offsets[:-1]]
    differs = weights != np.repeat(first, dataset.sizes)
    if differs.any():
        item = int(np.flatnonzero(differs)[0])
        query = int(dataset.query_numbers[item])
        raise RankPolicyError(
            f"sample_weight must be equal for all rows of a query, since whole lists are learned from; query {dataset.query_ids[query]} "
            f"has {first[query]:g} and {weights[item]:g}. Give one weight per query."
        )
    return np.asarray(first)
