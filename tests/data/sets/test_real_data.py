"""Counts of public datasets, which are not part of the project: RANKPOLICY_DATA says where they are."""

import os
from pathlib import Path

import numpy as np
import pytest

from rankpolicy.data import concatenate, read_letor

DATA = Path(os.environ.get("RANKPOLICY_DATA", "nowhere"))

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)


def read_parts(name):
    return concatenate([read_letor(DATA / name / f"S{part}.txt.gz") for part in range(1, 6)])


def label_counts(dataset):
    return np.bincount(dataset.labels.astype(int)).tolist()


def test_mq2008():
    dataset = read_parts("letor_mq2008")
    assert (dataset.num_queries, dataset.num_items, dataset.num_features) == (784, 15211, 46)
    assert label_counts(dataset) == [12279, 2001, 931]
    assert dataset.query_ids[0] == "10002"
    assert dataset.item_ids[0] == "GX008-86-4444840"
    assert dataset.features[0, [0, 2, 45]].tolist() == np.array([0.007477, 1, 0.007042], np.float32).tolist()


def test_mq2007():
    dataset = read_parts("letor_mq2007")
    assert (dataset.num_queries, dataset.num_items, dataset.num_features) == (1692, 69623, 46)
    assert label_counts(dataset) == [51632, 14128, 3863]
    kept, num_dropped = dataset.drop_queries_without_relevant_items()
    assert (kept.num_queries, kept.num_items, num_dropped) == (1455, 59570, 237)


def test_lightgbm_example_with_sizes_beside_it():
    train = read_letor(DATA / "lightgbm_lambdarank" / "rank.train.gz")
    test = read_letor(DATA / "lightgbm_lambdarank" / "rank.test.gz", num_features=train.num_features)
    assert (train.num_queries, train.num_items, train.num_features) == (201, 3005, 300)
    assert (test.num_queries, test.num_items, test.num_features) == (50, 768, 300)
    assert train.sizes[:3].tolist() == [1, 13, 5]


def test_plain_reader_agrees_with_kernel_on_real_lines(monkeypatch):
    path = DATA / "letor_mq2008" / "S1.txt.gz"
    fast = read_letor(path)
    monkeypatch.setattr("rankpolicy.data.formats.letor_text.HAS_NUMBA", False)
    plain = read_letor(path)
    assert fast.features.tobytes() == plain.features.tobytes()
    assert fast.item_ids.tolist() == plain.item_ids.tolist()
    assert fast.query_ids.tolist() == plain.query_ids.tolist()
