"""LETOR (SVMlight) files: ``label qid:id feature:value ... # comment``.

Files with the sizes of consecutive queries, next to a data file: LightGBM's ``.query`` and XGBoost's ``.group``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.data.arrays import from_query_numbers, numbered_by_appearance
from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.formats.letor_lines import ITEM_ID, Lines
from rankpolicy.data.formats.letor_text import parse_text, texts_at
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.files import atomic_write, read_text_bytes
from rankpolicy.kernels.codes import ITEM
from rankpolicy.types import RankPolicyError

ROWS_PER_BLOCK = 1000


@checked_kinds
def read_letor(path: str | os.PathLike[str], *, num_features: int | None = None) -> RankingDataset:
    """Read a LETOR or SVMlight file.

    - Features that a line leaves out are 0. Feature ids count from 1, or from 0 if any line has a feature 0.
    - The lines of a query need not be consecutive; ``source_rows`` keeps the row of each item.
    - Item ids come from comments: ``#docid = GX01 inc = 1`` gives GX01; any other comment is taken as the id.
    - Without qid, the sizes of the queries are read from ``<file>.query`` (LightGBM) or ``<file>.group`` (XGBoost).

    A malformed line is an error that names file and line. Values are kept as float32.

    Parameters
    ----------
    path
        The file, plain or compressed with gzip or zstandard.
    num_features
        Number of features, so that training and test data agree; a higher feature id is an error. None: the highest id of the file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "train.txt")
    ...     _ = file.write_text("2 qid:10 1:0.5 3:1 #docid = GX01\\n0 qid:10 2:.25 #docid = GX02\\n")
    ...     dataset = read_letor(file)
    >>> dataset.features.tolist(), dataset.item_ids.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]], ['GX01', 'GX02'])
    """
    if num_features is not None and (not isinstance(num_features, int | np.integer) or num_features < 1):
        raise RankPolicyError(f"num_features must be a whole number, 1 or more; got {num_features!r}.")
    file = Path(path)
    text = read_text_bytes(file)
    try:
        lines = parse_text(text, num_features)
        rows = _rows_of_items(lines)
        has_query_ids = bool(lines.query_ids[rows].any())
        query_ids = texts_at(text, lines.query_ids[rows])
        has_comments = bool((lines.item_ids[rows, 0] >= 0).any())
        item_ids = texts_at(text, lines.item_ids[rows]) if has_comments else None
    except RankPolicyError as error:
        raise error.within(f"{file}") from None
    labels = lines.labels[rows]
    if has_query_ids:
        query_of_row, names = _numbered_runs(query_ids)
    else:
        sizes = read_group_sizes(file, len(labels))
        query_of_row, names = np.repeat(np.arange(len(sizes)), sizes), np.arange(len(sizes)).astype(str)
    return from_query_numbers(lines.features[rows], labels, query_of_row, query_ids=names, item_ids=item_ids)


@checked_kinds
def write_letor(dataset: RankingDataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset as a LETOR file; ``read_letor`` returns exactly the same values.

    Item ids are written as ``#docid = id``. The format cannot hold groups, feature names, missing values and categories; with one of the
    last two, ``write_parquet`` is the way.

    Parameters
    ----------
    dataset
        The dataset.
    path
        The file; a name that ends in .gz, .bz2 or .zst is compressed.
    """
    if dataset.categories is not None or np.isnan(dataset.features_by_query).any():
        raise RankPolicyError(
            "a LETOR file can hold neither missing values nor categories, and the dataset has some: use write_parquet."
        )
    query_ids = _checked_query_ids(dataset)
    comments = (
        [""] * dataset.num_items
        if dataset.item_ids_by_query is None
        else [_comment(item_id) for item_id in dataset.item_ids_by_query.tolist()]
    )
    template = "%s qid:%s " + " ".join(f"{feature}:%s" for feature in range(1, dataset.num_features + 1)) + "%s\n"
    query_of_item = dataset.query_numbers
    with atomic_write(path) as file:
        for start in range(0, dataset.num_items, ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            rows = zip(
                [text.removesuffix(".0") for text in _shortest(dataset.labels_by_query[block])],
                query_ids[query_of_item[block]].tolist(),
                _shortest(np.asarray(dataset.features_by_query[block])),
                comments[block],
                strict=True,
            )
            file.write(
                "".join([template % (label, qid, *values, comment) for label, qid, values, comment in rows]).encode()
            )


def _rows_of_items(lines: Lines) -> Any:
    """The lines that hold items: a slice if all do, which saves a copy."""
    return slice(None) if (lines.kinds == ITEM).all() else np.flatnonzero(lines.kinds == ITEM)


def _numbered_runs(query_ids: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Number the query of each row by first appearance; only the first id of a run of equal ids is sorted."""
    starts = np.concatenate([[0], np.flatnonzero(query_ids[1:] != query_ids[:-1]) + 1])
    number_of_run, names = numbered_by_appearance(query_ids[starts], len(starts))
    return np.repeat(number_of_run, np.diff(starts, append=len(query_ids))), names


def _shortest(values: NDArray[np.float32]) -> Any:
    """The shortest decimals that read back as the same float32, in lists nested like the array."""
    return values.astype(str).tolist()


def _checked_query_ids(dataset: RankingDataset) -> NDArray[Any]:
    ids = dataset.query_ids.astype(str)
    names, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        twice = str(names[counts.argmax()])
        raise RankPolicyError(
            f"query ids must differ to be written, or reading would merge queries; {twice!r} names {counts.max()}."
        )
    for name in names.tolist():
        if not re.fullmatch(r"[^\s#\0]+", name):
            raise RankPolicyError(f"query ids must be words without space or '#' to be written; got {name!r}.")
    return ids


def _comment(item_id: str) -> str:
    if re.fullmatch(r"[^\s\0]+", item_id):
        return f" #docid = {item_id}"
    if item_id != item_id.strip() or re.search(r"[\0\n\r]", item_id) or ITEM_ID.match(item_id.encode()):
        raise RankPolicyError(
            f"item ids must be on one line, without space around them, to be written; got {item_id!r}."
        )
    return f" # {item_id}"


SUFFIXES = (".query", ".group")


def read_group_sizes(data_file: Path, num_items: int) -> NDArray[np.int64]:
    """The number of items of each query, from the file next to a data file whose lines have no qid."""
    is_compressed = data_file.suffix in (".gz", ".bz2", ".zst")
    stems = [data_file, data_file.with_suffix("")] if is_compressed else [data_file]
    candidates = [stem.with_name(stem.name + suffix) for stem in stems for suffix in SUFFIXES]
    size_file = next((candidate for candidate in candidates if candidate.is_file()), None)
    if size_file is None:
        raise RankPolicyError(
            f"{data_file}: expected qid:<query id> after the label of each line, or the sizes of the queries in "
            f"{' or '.join(candidate.name for candidate in candidates)}; got neither."
        )
    sizes = [
        _parse_size(size_file, number, line)
        for number, line in enumerate(read_text_bytes(size_file).tobytes().split(b"\n"), 1)
        if line.strip()
    ]
    if sum(sizes) != num_items:
        raise RankPolicyError(
            f"the sizes in {size_file} must add up to the items of {data_file.name}, {num_items}; "
            f"they add up to {sum(sizes)}. "
            "Are both files of the same data?"
        )
    return np.array(sizes, np.int64)


def _parse_size(size_file: Path, number: int, line: bytes) -> int:
    word = line.strip().decode("utf-8", "backslashreplace")
    if not (word.isascii() and word.isdigit() and int(word) > 0):
        raise RankPolicyError(
            f"{size_file}, line {number}: expected the number of items of a query, 1 or more; got {word[:40]!r}."
        )
    return int(word)
