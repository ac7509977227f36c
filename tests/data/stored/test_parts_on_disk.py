"""Of a part of stored data, as of a split, the numbers of its rows are on disk as well, and nothing else changes."""

import tracemalloc

import numpy as np
import pytest

from rankpolicy.data import dataset, from_arrays, split_queries, write_parquet
from rankpolicy.data.sets.ranking import make_ranking
from rankpolicy.data.stored import features, pages, parquet
from rankpolicy.data.stored.parquet import scan_parquet
from rankpolicy.rankers import LambdaMART, PGRank

pytest.importorskip("polars")


@pytest.fixture
def made():
    data = make_ranking(120, items_per_query=(2, 9), num_features=5, num_informative=3, random_state=0)
    labels = np.where(np.repeat(np.arange(120) % 5 == 0, data.sizes), 0, data.labels_by_query)
    return from_arrays(data.features_by_query, labels, group=data.sizes)


def scanned(data, folder, stored_as):
    write_parquet(data, folder / "data.parquet")
    return scan_parquet(folder / "data.parquet", cache=folder / "cache", stored_as=stored_as, progress=False)


@pytest.fixture
def stored(made, tmp_path):
    return scanned(made, tmp_path, "uint16")  # which holds all values of this data


@pytest.fixture
def on_disk(monkeypatch):
    """Even a few rows are on disk, and are read a few at a time."""
    for module, name in (
        (pages, "_FEW_NUMBERS"),
        (pages, "_NUMBERS_AT_ONCE"),
        (pages, "_ROWS_AT_ONCE"),
        (dataset, "_QUERIES_AT_ONCE"),
        (features, "_SCATTERED_ROWS"),
    ):
        monkeypatch.setattr(module, name, 7)


PARTS = {
    "split": lambda data: split_queries(data, (0.7, 0.3))[0],
    "any order": lambda data: data[np.random.default_rng(0).permutation(data.num_queries)[:80]],
    "of the end": lambda data: data[40:][np.arange(80) % 3 != 0],
    "of a part": lambda data: split_queries(data, (0.7, 0.3))[1][np.arange(36) % 2 == 0],
    "slice of a part": lambda data: split_queries(data, (0.7, 0.3))[0][20:60],
    "relevant": lambda data: data.drop_queries_without_relevant_items()[0],
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_part_is_that_of_the_data_in_memory(part, made, stored, on_disk):
    ours, theirs = part(stored), part(made)
    assert all(
        isinstance(numbers, np.memmap)
        for numbers in (ours.labels_by_query, ours.source_rows_by_query, ours.features_by_query.rows)
    )
    for name in ("labels_by_query", "source_rows_by_query", "query_offsets", "query_ids", "features_by_query"):
        np.testing.assert_array_equal(np.asarray(getattr(ours, name)), getattr(theirs, name))
    rows = np.array([5, 3, 60, 4])
    np.testing.assert_array_equal(np.asarray(ours.features_by_query[rows]), theirs.features_by_query[rows])
    np.testing.assert_array_equal(ours.features_by_query[:, 1], theirs.features_by_query[:, 1])


def test_files_are_gone_with_the_data_and_none_is_made_where_there_is_no_folder(made, stored, on_disk, tmp_path):
    (cache,) = (tmp_path / "cache").iterdir()
    before = sorted(file.name for file in cache.iterdir())
    assert isinstance(split_queries(stored)[0].labels_by_query, np.memmap)
    assert sorted(file.name for file in cache.iterdir()) == before
    cache.rename(tmp_path / "elsewhere")
    part = split_queries(stored)[0]
    assert not isinstance(part.labels_by_query, np.memmap)
    np.testing.assert_array_equal(part.labels_by_query, split_queries(made)[0].labels_by_query)


@pytest.mark.parametrize("ranker", [PGRank(epochs=2, num_networks=2), LambdaMART(num_trees=3, min_items_in_leaf=5)])
def test_training_is_the_same_bit_for_bit(ranker, made, tmp_path, request):
    stored = scanned(made, tmp_path, "uint8")

    def scores():
        train, valid = split_queries(stored, (0.7, 0.3))
        return ranker.fit(train, valid=valid, progress=False).predict(stored), ranker.best_score_

    in_memory, best = scores()
    request.getfixturevalue("on_disk")
    ours, our_best = scores()
    np.testing.assert_array_equal(ours, in_memory)
    assert our_best == best


def peak_bytes(run):
    tracemalloc.start()
    try:
        found = run()
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_no_number_per_row_is_held_in_memory(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    from rankpolicy.data.batches import RaggedTensors
    from rankpolicy.data.rows import ScaledRows
    from rankpolicy.data.scaling import fit_scaling

    for module, name in (
        (pages, "_FEW_NUMBERS"),
        (pages, "_NUMBERS_AT_ONCE"),
        (pages, "_ROWS_AT_ONCE"),
        (dataset, "_QUERIES_AT_ONCE"),
        (parquet, "_BLOCK_ROWS"),
        (features, "_BLOCK_ROWS"),
    ):
        monkeypatch.setattr(module, name, 2000)

    def scan(num_queries):
        labels = np.tile([0, 1, 2, 0] + [0] * 196, num_queries)
        labels[: len(labels) // 10] = 0
        values = np.random.default_rng(0).normal(size=(len(labels), 2))
        write_parquet(from_arrays(values, labels, group=[200] * num_queries), tmp_path / "data.parquet")
        return peak_bytes(lambda: scan_parquet(tmp_path / "data.parquet", cache=tmp_path / "cache", progress=False))

    def prepare(data):
        train, _ = split_queries(data, (0.9, 0.1))
        train, _ = train.drop_queries_without_relevant_items()
        assert train.num_queries < 0.9 * data.num_queries
        rows = ScaledRows(train.features_by_query, fit_scaling("standardize", train), torch.device("cpu"))
        return RaggedTensors.of(train, rows, torch.device("cpu")).batch(np.arange(4))

    peaks = []
    for num_queries in (20, 500, 1000):  # the first compiles kernels
        data, of_scan = scan(num_queries)
        peaks.append((of_scan, peak_bytes(lambda data=data: prepare(data))[1]))
    per_row = np.diff(peaks, axis=0)[-1] / 100_000
    assert (per_row < 3).all()


def test_blocks_are_the_rows_in_order(made, stored, on_disk, monkeypatch):
    monkeypatch.setattr(features, "_BLOCK_ROWS", 50)
    assert stored.is_on_disk
    assert not made.is_on_disk
    blocks = list(stored.feature_blocks())
    assert len(blocks) == -(-stored.num_items // 50)
    np.testing.assert_array_equal(np.concatenate(blocks), made.features)
    np.testing.assert_array_equal(np.concatenate(list(made.feature_blocks())), made.features)
    for data in (stored, made):
        np.testing.assert_array_equal(np.concatenate(list(data.label_blocks())), made.labels)
