import threading

import numpy as np
import pytest
import torch

from rankpolicy.data.batches import RaggedTensors, read_ahead
from rankpolicy.data.rows import QueryRows, RowsWithDeviations, ScaledRows, is_on_disk
from rankpolicy.data.scaling import fit_scaling
from rankpolicy.data.sets.ranking import make_ranking
from rankpolicy.data.stored.parquet import scan_parquet
from tests.waits import LONGEST_WAIT


def test_the_next_value_is_made_while_one_is_used():
    made, used = [], threading.Event()

    def values():
        for number in range(4):
            made.append((number, threading.current_thread() is threading.main_thread()))
            if number == 1:
                used.set()
            yield number

    ahead = read_ahead(values())
    assert made == []
    assert next(ahead) == 0
    assert used.wait(LONGEST_WAIT)  # 1 is made before it is asked for
    assert list(ahead) == [1, 2, 3]
    assert not any(in_main for _, in_main in made)


def test_an_error_comes_where_the_value_would_have():
    def values():
        yield 1
        raise ValueError("damaged")

    ahead = read_ahead(values())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="damaged"):
        next(ahead)


def test_closing_ends_the_thread():
    before = threading.active_count()
    ahead = read_ahead(iter(range(100)))
    next(ahead)
    ahead.close()
    assert threading.active_count() == before


def test_batches_of_data_on_disk_are_those_that_are_read_one_by_one(tmp_path, monkeypatch):
    from rankpolicy.data import write_parquet

    data = make_ranking(30, items_per_query=(2, 6), num_features=4, num_informative=3)
    write_parquet(data, tmp_path / "data.parquet")
    stored = scan_parquet(tmp_path / "data.parquet", cache=tmp_path / "cache", progress=False)
    cpu = torch.device("cpu")
    scaling = fit_scaling("quantile", stored)
    rows = ScaledRows(stored.features, scaling, cpu)
    queries = QueryRows.of(rows, stored.offsets)
    assert all(map(is_on_disk, (rows, queries, RowsWithDeviations(queries))))
    assert not is_on_disk(torch.zeros(2, 2))
    assert not is_on_disk(ScaledRows(data.features, fit_scaling("quantile", data), cpu))
    tensors = RaggedTensors.of(stored, rows, cpu)

    def batches():
        return [
            (batch.features.numpy(), batch.labels.numpy())
            for batch in tensors.shuffled_batches(7, generator=torch.Generator().manual_seed(0))
        ]

    ahead = batches()
    monkeypatch.setattr("rankpolicy.data.batches.is_on_disk", lambda _: False)
    for ours, theirs in zip(ahead, batches(), strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])
