"""What a user asks about: the data, a query and an item in it, and how their features are written."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.frames import frame_names
from rankpolicy.rankers.fit_inputs import training_dataset
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.rankers.base import Ranker


def dataset_to_explain(
    ranker: Ranker, data: Any, what: str, *, y: Any = None, qid: Any = None, group: Any = None
) -> RankingDataset:
    """The data with the features that the ranker was fitted on; sparse ones made dense; refuses texts."""
    ranker._require_fitted()
    if ranker._reads_texts:
        raise RankPolicyError(
            f"explanations show what each feature adds; this {type(ranker).__name__} reads texts and has no features to explain. "
            "Use a ranker over features."
        )
    if data is None or isinstance(data, str | Path):
        raise RankPolicyError(
            f"{what} must be a RankingDataset; got {type(data).__name__}. A matrix or a frame will do, with qid= where there are several "
            "queries."
        )
    if y is not None:
        data = training_dataset(
            data, y, qid, group, feature_names=ranker.feature_names_, categorical=ranker.categories_ or ()
        )
        qid = group = None
    dataset = ranker._to_rank(data, qid, group, None)
    if dataset.item_ids_by_query is None and "item_id" in getattr(data, "columns", ()):
        dataset = replace(
            dataset, item_ids_by_query=dataset.in_query_order(frame_names(data, "item_id", "item_id").astype(str))
        )
    return (
        dataset
        if isinstance(dataset.features_by_query, np.ndarray)
        else replace(dataset, features_by_query=np.asarray(dataset.features_by_query))
    )


def find_item(ranker: Ranker, data: RankingDataset, query: Any, item: Any) -> tuple[int, int]:
    """Number of the query and index of the item in it; without a name the item that is ranked first."""
    number = None if query is None else _find_query(data, query)
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        return _find_row(data, number, int(item))
    if item is not None and not isinstance(item, str):
        raise RankPolicyError(
            f"an item is named by its id, a text, or by its row, a whole number as rank gives it; got {item!r:.60}."
        )
    if number is None:
        if data.num_queries > 1:
            raise RankPolicyError(
                f"name the query: the data has {data.num_queries}, such as {str(data.query_ids[0])!r}."
            )
        number = 0
    query_items = data[number : number + 1]
    if item is None:
        return number, int(np.argmax(ranker._scores(query_items)))
    if query_items.item_ids_by_query is None:
        raise RankPolicyError(
            f"the items of the data have no ids; got {item!r}. Name the item by its row in the data, a whole number from 0, as rank does."
        )
    matching_indices = np.flatnonzero(query_items.item_ids_by_query == item)
    if len(matching_indices) == 0:
        raise RankPolicyError(
            _unknown(f"item of query {data.query_ids[number]}", item, query_items.item_ids_by_query.tolist())
        )
    return number, int(matching_indices[0])


def _find_query(data: RankingDataset, query: Any) -> int:
    matching_indices = np.flatnonzero(data.query_ids == str(query))
    if len(matching_indices) == 0:
        raise RankPolicyError(_unknown("query", str(query), data.query_ids.tolist()))
    return int(matching_indices[0])


def _find_row(data: RankingDataset, number: int | None, row: int) -> tuple[int, int]:
    matching_indices = np.flatnonzero(data.row_numbers() == row)
    if len(matching_indices) == 0:
        raise RankPolicyError(
            f"the row of an item must be from 0 to {data.num_items - 1}, a row of the data as rank gives it; got {row}."
        )
    row_index = int(matching_indices[0])
    owner = int(data.query_numbers[row_index])
    if number is not None and owner != number:
        raise RankPolicyError(
            f"both items must belong to query {data.query_ids[number]}; row {row} belongs to query {data.query_ids[owner]}."
        )
    return owner, row_index - int(data.query_offsets[owner])


def _unknown(kind: str, name: str, ids: list[Any]) -> str:
    known_names = [str(name) for name in ids]
    close = difflib.get_close_matches(name, known_names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(known_names[:5]) + (", ..." if len(known_names) > 5 else "")
    return f"there is no {kind} with the id {name!r}.{hint} There are {len(known_names)}: {listed}."


def names_of(data: RankingDataset) -> tuple[str, ...]:
    """Names of the features; their numbers, from 0, where the data has no names."""
    return data.feature_names or tuple(f"feature {number}" for number in range(data.num_features))


def shown_features(data: RankingDataset, row_index: int) -> tuple[str, ...]:
    """The features of an item as texts: numbers in four digits, categories by name, "missing" for NaN."""
    return tuple(
        _shown(value, categories)
        for value, categories in zip(data.features_by_query[row_index].tolist(), _categories(data), strict=True)
    )


def shown_means(data: RankingDataset, rows: NDArray[np.float32]) -> tuple[str, ...]:
    """The means of features over rows as texts; of categories the most frequent one."""
    texts = []
    for column, categories in zip(rows.T.astype(np.float64), _categories(data), strict=True):
        present = column[~np.isnan(column)]
        if len(present) == 0:
            texts.append("missing")
        elif categories is None:
            texts.append(f"{present.mean():.4g}")
        else:
            texts.append(f"mostly {categories[int(np.bincount(present.astype(np.int64)).argmax())]}")
    return tuple(texts)


def _categories(data: RankingDataset) -> list[tuple[str, ...] | None]:
    categories = data.categories or {}
    return [categories.get(name) for name in names_of(data)]


def _shown(value: float, categories: tuple[str, ...] | None) -> str:
    if np.isnan(value):
        return "missing"
    return f"{value:.4g}" if categories is None else categories[int(value)]
