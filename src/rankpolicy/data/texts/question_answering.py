"""Datasets of texts: questions with candidate answers, from lists, JSON lines or Parquet with one question per row."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.table_files import is_parquet, table_frame
from rankpolicy.data.texts.texts import Texts
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.files import checked_file, read_text_bytes
from rankpolicy.types import RankPolicyError


@checked_kinds
def from_texts(
    queries: Sequence[str],
    items: Sequence[Sequence[str]],
    labels: Sequence[Sequence[float]] | None = None,
    *,
    query_ids: Sequence[str] | None = None,
    item_ids: Sequence[Sequence[str]] | None = None,
) -> RankingDataset:
    """A dataset of texts.

    Parameters
    ----------
    queries
        Text of each query.
    items
        For each query the texts of its items.
    labels
        For each query the labels of its items; None for data still to be ranked.
    query_ids
        Id of each query; None: 0, 1, 2, ...
    item_ids
        For each query the ids of its items, or None.

    >>> from_texts(["capital of France?"], [["Paris is.", "France is large."]], [[1, 0]])
    RankingDataset(queries=1, items=2, features=0, texts, labels 0..1)
    """
    if len(items) != len(queries):
        raise RankPolicyError(f"items must hold a list for each of the {len(queries)} queries; got {len(items)}.")
    for name, lists in (("labels", labels), ("item_ids", item_ids)):
        if lists is not None and [len(of_query) for of_query in lists] != [len(of_query) for of_query in items]:
            raise RankPolicyError(f"{name} must hold one value per item of each query, as items does.")
    sizes = np.array([len(of_query) for of_query in items], np.int64)
    if len(sizes) == 0 or (sizes == 0).any():
        which = "there is no query" if len(sizes) == 0 else f"query {int(sizes.argmin())} has none"
        raise RankPolicyError(f"every query must have at least one item; {which}. Leave such queries out.")
    num_items = int(sizes.sum())
    flat_labels = np.zeros(num_items) if labels is None else [label for of_query in labels for label in of_query]
    return RankingDataset(
        features_by_query=np.empty((num_items, 0), np.float32),
        labels_by_query=np.array(flat_labels, np.float32),
        label_kind="none" if labels is None else "grades",
        query_offsets=np.concatenate([[0], np.cumsum(sizes)]),
        query_ids=np.array(range(len(queries)) if query_ids is None else query_ids).astype(str),
        source_rows_by_query=np.arange(num_items),
        item_ids_by_query=None
        if item_ids is None
        else np.array([name for of_query in item_ids for name in of_query]).astype(str),
        texts_by_query=Texts.of(queries, [text for of_query in items for text in of_query]),
    )


@checked_kinds
def read_question_answering(path: str | os.PathLike[str]) -> RankingDataset:
    """Read questions with candidate answers, one question per row.

    A row has ``query`` (a text), ``items`` (a list of texts), ``labels`` (one number per item; absent from all rows of data still to be
    ranked) and optionally ``query_id``.

    Parameters
    ----------
    path
        A Parquet file (ending in .parquet), or JSON lines, plain or compressed with gzip or zstandard.
    """
    file = checked_file(path)
    rows = list(_parquet_rows(file) if is_parquet(file) else _json_rows(file))
    if not rows:
        raise RankPolicyError(f"{file} must hold at least one question; it is empty.")
    for location, row in rows:
        _check(row, location)
    has_labels = [row.get("labels") is not None for _, row in rows]
    if any(has_labels) and not all(has_labels):
        raise RankPolicyError(f"{rows[has_labels.index(False)][0]}: labels must be in all rows or in none.")
    return from_texts(
        [row["query"] for _, row in rows],
        [row["items"] for _, row in rows],
        [row["labels"] for _, row in rows] if all(has_labels) else None,
        query_ids=[str(row.get("query_id", index)) for index, (_, row) in enumerate(rows)],
    )


def check_text(text: object, name: str, location: str) -> None:
    """Refuse a value that is not a text, or is empty."""
    if not isinstance(text, str) or not text.strip():
        raise RankPolicyError(f"{location}: {name} must be a text that is not empty; got {text!r:.60}.")


def text_lines(file: Path) -> Iterator[tuple[str, str]]:
    """Place (for error messages) and content of each line of a UTF-8 file, plain or compressed; blank lines are left out."""
    try:
        text = read_text_bytes(file).tobytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise RankPolicyError(f"{file} must be text in UTF-8; byte {error.start} is not. Convert it first.") from None
    # Only at newlines: splitlines would also split at rarer separators that occur within texts.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{file}, line {number}", line.rstrip("\r")


def _json_rows(file: Path) -> Iterable[tuple[str, dict[str, Any]]]:
    for location, line in text_lines(file):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise RankPolicyError(f"{location} must be a JSON object; it cannot be read ({error}).") from None
        if not isinstance(row, dict):
            raise RankPolicyError(
                f'{location} must be a JSON object such as {{"query": ..., "items": [...]}}; got {line:.60}'
            )
        yield location, row


def _parquet_rows(file: Path) -> Iterable[tuple[str, dict[str, Any]]]:
    return ((f"{file}, row {index}", row) for index, row in enumerate(table_frame(file).iter_rows(named=True)))


def _check(row: dict[str, Any], location: str) -> None:
    missing = {"query", "items"} - set(row)
    if missing:
        raise RankPolicyError(
            f"{location}: a question needs query and items; {' and '.join(sorted(missing))} missing, it has {', '.join(row) or 'nothing'}."
        )
    check_text(row["query"], "query", location)
    items, labels = row["items"], row.get("labels")
    if not isinstance(items, list) or not items:
        raise RankPolicyError(f"{location}: items must be a list of at least one text; got {items!r:.60}.")
    for index, text in enumerate(items):
        check_text(text, f"item {index}", location)
    if labels is None:
        return
    if not isinstance(labels, list) or len(labels) != len(items):
        count = f"{len(labels)}" if isinstance(labels, list) else f"{labels!r:.60}"
        raise RankPolicyError(f"{location}: labels must be as many as items, {len(items)}; got {count}.")
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, int | float) or not 0 <= label < float("inf"):
            raise RankPolicyError(f"{location}: labels must be numbers, 0 or more; got {label!r}.")
