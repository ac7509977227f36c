"""TREC files: judgements (``qid 0 docid relevance``) and runs (``qid Q0 docid rank score tag``).

Item ids are the docids; for a dataset without item ids they are the rows of the file it came from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.declarations.arguments import as_array, checked_kinds
from rankpolicy.files import atomic_write, read_text_bytes
from rankpolicy.types import RankPolicyError

Number = TypeVar("Number", int, float)


@checked_kinds
def read_qrels(path: str | os.PathLike[str]) -> dict[str, dict[str, int]]:
    """Read judgements: labels by query id and item id, ``{"q1": {"d1": 2}}``.

    Parameters
    ----------
    path
        The file, plain or compressed.
    """
    return _read(
        path, layout="qid 0 docid relevance", value_at=3, kind="a whole number", pattern=r"[+-]?\d+", parse=int
    )


@checked_kinds
def read_run(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Read a run: scores by query id and item id, ``{"q1": {"d1": 0.5}}``. As in trec_eval, ranks in the file are ignored.

    Parameters
    ----------
    path
        The file, plain or compressed.
    """
    number = r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?"
    return _read(path, layout="qid Q0 docid rank score tag", value_at=4, kind="a number", pattern=number, parse=float)


@checked_kinds
def scores_of_run(
    run: Mapping[str, Mapping[str, float]], dataset: RankingDataset, *, name: str = "the run"
) -> NDArray[np.float64]:
    """Scores that a run gives to the items of a dataset (items,), in the order in which a ranker's ``predict(dataset)`` gives them.

    The run must score every item of every query of the dataset, and no other items of these queries: a list that leaves items out, or holds
    items without label, is not comparable with a ranking of all items. Other queries of the run are ignored.

    Parameters
    ----------
    run
        Scores by query id and item id, from ``read_run``. Item ids are those of the dataset; for a dataset without item ids they are the
        rows of the file it came from, counted from 0.
    dataset
        The dataset.
    name
        What the run is called in error messages.

    >>> from rankpolicy.data.arrays import from_arrays
    >>> dataset = from_arrays([[0.0], [1.0]], [0, 1], qid=["q", "q"], item_ids=["a", "b"])
    >>> scores_of_run({"q": {"b": 2.5, "a": 0.5}, "r": {"a": 1.0}}, dataset)
    array([0.5, 2.5])
    """
    item_ids: NDArray[Any] = (
        dataset.source_rows_by_query if dataset.item_ids_by_query is None else dataset.item_ids_by_query
    )
    rows = (
        ""
        if dataset.item_ids_by_query is not None
        else " The data has no item ids: rows of its file, counted from 0, serve as ids."
    )
    missing = [str(query) for query in dataset.query_ids if str(query) not in run]
    if missing:
        raise RankPolicyError(
            f"{name} must rank every query of the data; {len(missing)} of {dataset.num_queries} queries are missing, the first is "
            f"{missing[0]!r}."
        )
    scores = np.empty(dataset.num_items)
    for query, first, last in zip(
        dataset.query_ids, dataset.query_offsets[:-1], dataset.query_offsets[1:], strict=True
    ):
        score_of, items = run[str(query)], [str(item) for item in item_ids[first:last]]
        if len(set(items)) < len(items):
            raise RankPolicyError(
                f"the items of a query must have different ids to be found in {name}; query {str(query)!r} has one of them twice."
            )
        absent = [item for item in items if item not in score_of]
        if absent:
            raise RankPolicyError(
                f"{name} must rank every item of a query; of query {str(query)!r} it lacks {len(absent)} of {len(items)} items, such as "
                f"{absent[0]!r}. Give those that were not retrieved a score below all others.{rows}"
            )
        if len(score_of) > len(items):
            other = next(item for item in score_of if item not in set(items))
            raise RankPolicyError(
                f"{name} must rank only items of the data; of query {str(query)!r} it has {len(score_of) - len(items)} others, such as "
                f"{other!r}. Leave them out.{rows}"
            )
        scores[first:last] = [score_of[item] for item in items]
    return dataset.in_row_order(scores)


@checked_kinds
def write_qrels(dataset: RankingDataset, path: str | os.PathLike[str]) -> None:
    """Write the labels of a dataset as TREC judgements.

    Parameters
    ----------
    dataset
        The dataset; its labels must be whole numbers.
    path
        The file; a name that ends in .gz, .bz2 or .zst is compressed.
    """
    if (dataset.labels_by_query != np.round(dataset.labels_by_query)).any():
        item = int(np.argmax(dataset.labels_by_query != np.round(dataset.labels_by_query)))
        raise RankPolicyError(
            f"labels must be whole numbers in a qrels file; row {dataset.source_rows_by_query[item]} has "
            f"{dataset.labels_by_query[item]:g}."
        )
    query_ids, item_ids = _words(dataset)
    labels = dataset.labels_by_query.astype(np.int64).tolist()
    with atomic_write(path) as file:
        file.writelines(
            f"{qid} 0 {item} {label}\n".encode() for qid, item, label in zip(query_ids, item_ids, labels, strict=True)
        )


@checked_kinds
def write_run(
    dataset: RankingDataset, scores: ArrayLike, path: str | os.PathLike[str], *, tag: str = "rankpolicy"
) -> None:
    """Write scores as a TREC run; items with equal scores keep the order of the dataset.

    Parameters
    ----------
    dataset
        The dataset that was scored.
    scores
        One score per item (items,), in the order in which a ranker's ``predict(dataset)`` gives them: that of the rows that the dataset was
        made from.
    path
        The file; a name that ends in .gz, .bz2 or .zst is compressed.
    tag
        Name of the run, the last word of each line.
    """
    values = as_array("scores", scores)
    if values.shape != (dataset.num_items,):
        raise RankPolicyError(f"scores must have one value per item, shape ({dataset.num_items},); got {values.shape}.")
    if not np.isfinite(values).all():
        raise RankPolicyError(
            f"scores must be finite; item {int(np.argmin(np.isfinite(values)))} has {values[~np.isfinite(values)][0]}."
        )
    if not re.fullmatch(r"\S+", tag):
        raise RankPolicyError(f"tag must be a word without space; got {tag!r}.")
    values = dataset.in_query_order(values)
    query_ids, item_ids = _words(dataset)
    order = np.lexsort((-values, dataset.query_numbers))
    ranks = np.arange(dataset.num_items) - np.repeat(dataset.query_offsets[:-1], dataset.sizes) + 1
    texts = values.astype(str)
    with atomic_write(path) as file:
        for item, rank in zip(order.tolist(), ranks.tolist(), strict=True):
            file.write(f"{query_ids[item]} Q0 {item_ids[item]} {rank} {texts[item]} {tag}\n".encode())


def _read(
    path: str | os.PathLike[str], *, layout: str, value_at: int, kind: str, pattern: str, parse: Callable[[str], Number]
) -> dict[str, dict[str, Number]]:
    num_words = len(layout.split())
    values_by_query: dict[str, dict[str, Number]] = {}
    for number, line in _numbered_lines(path):
        words = line.split()
        if not words:
            continue
        if len(words) != num_words:
            raise RankPolicyError(
                f"{path}, line {number}: expected {num_words} words, {layout}; got {len(words)} in {line[:60]!r}."
            )
        value = words[value_at]
        if not re.fullmatch(pattern, value, re.ASCII):
            raise RankPolicyError(
                f"{path}, line {number}: expected {kind} as {layout.split()[value_at]}; got {value[:40]!r}."
            )
        items = values_by_query.setdefault(words[0], {})
        if words[2] in items:
            raise RankPolicyError(
                f"{path}, line {number}: expected each item of a query once; "
                f"{words[2]!r} of query {words[0]!r} comes again."
            )
        items[words[2]] = parse(value)
    if not values_by_query:
        raise RankPolicyError(f"{path}: expected lines {layout}; the file is empty.")
    return values_by_query


def _numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_text_bytes(path).tobytes().split(b"\n"), 1):
        try:
            yield number, line.decode()
        except UnicodeDecodeError:
            raise RankPolicyError(
                f"{path}, line {number}: expected UTF-8 text; got {line[:40]!r}. Convert the file to UTF-8."
            ) from None


def _words(dataset: RankingDataset) -> tuple[list[str], list[str]]:
    """Query id and item id of each item, checked to be words without space."""
    item_ids: NDArray[Any] = (
        dataset.source_rows_by_query.astype(str) if dataset.item_ids_by_query is None else dataset.item_ids_by_query
    )
    queries, items = dataset.query_ids[dataset.query_numbers].tolist(), item_ids.tolist()
    for name, words in (("query_ids", dataset.query_ids.tolist()), ("item_ids", items)):
        for word in words:
            if not re.fullmatch(r"\S+", word):
                raise RankPolicyError(f"{name} must be words without space in a TREC file; got {word!r}.")
    pairs = list(zip(queries, items, strict=True))
    if len(set(pairs)) < len(pairs):
        seen: set[tuple[str, str]] = set()
        query, item = next(pair for pair in pairs if pair in seen or seen.add(pair))  # type: ignore[func-returns-value]
        raise RankPolicyError(
            f"the items of a query must have different ids in a TREC file; query {query!r} has {item!r} twice."
        )
    return queries, items
