"""Fingerprints of data, to record what a run was trained on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.sparse import SparseFeatures
from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.files import checked_file


def sha256_of_file(path: str | os.PathLike[str]) -> str:
    """The sha256 of the bytes of a file, as hexadecimal digits."""
    with open(checked_file(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(dataset: RankingDataset) -> str:
    """The sha256 of the content of a dataset, as hexadecimal digits; ``source_rows`` are left out."""
    digest = hashlib.sha256()
    for content in _content(dataset):
        # The length goes first, so that two different lists of parts never give the same bytes.
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def _content(dataset: RankingDataset) -> Iterator[bytes]:
    yield repr(dataset.features_by_query.shape).encode()
    yield from _feature_bytes(dataset)
    yield dataset.labels_by_query.astype("<f4").tobytes()
    yield dataset.query_offsets.astype("<i8").tobytes()
    for names in (dataset.query_ids, dataset.item_ids_by_query, dataset.groups_by_query):
        yield b"" if names is None else repr(names.tolist()).encode()
    yield repr(dataset.feature_names).encode()
    if dataset.texts_by_query is not None:
        yield repr(dataset.texts_by_query.queries).encode()
        yield repr([dataset.texts_by_query.item(item) for item in range(dataset.num_items)]).encode()
    if dataset.side_by_query is not None:
        for name, column in (*dataset.side_by_query.numbers.items(), *dataset.side_by_query.categories.items()):
            yield name.encode()
            yield repr(column.tolist()).encode()
    if dataset.shown_by_query is not None:
        for values in (dataset.shown_by_query.ranks, dataset.shown_by_query.users, dataset.shown_by_query.times):
            yield b"" if values is None else repr(values.tolist()).encode()
    if dataset.query_weights is not None:
        yield dataset.query_weights.astype("<f8").tobytes()
    if dataset.categories is not None:
        yield repr(dataset.categories).encode()
    if dataset.label_kind != "grades":
        yield dataset.label_kind.encode()


def _feature_bytes(dataset: RankingDataset) -> Iterator[bytes]:
    if isinstance(dataset.features_by_query, SparseFeatures):
        stored = dataset.features_by_query.matrix
        yield stored.indptr.astype("<i8").tobytes() + stored.indices.astype("<i8").tobytes()
        yield stored.data.astype("<f4").tobytes()
    elif isinstance(dataset.features_by_query, StoredFeatures):
        yield dataset.features_by_query.values.astype("<f4").tobytes()
        for block in dataset.features_by_query.blocks():
            yield block.codes_of_rows().astype("<u2").tobytes()
    else:
        yield np.ascontiguousarray(dataset.features_by_query, dtype="<f4").tobytes()
