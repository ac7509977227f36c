"""Quantiles of columns that are read in blocks."""

import numpy as np
import pytest

from rankpolicy.data.stored.codebook import QuantileSketch


@pytest.mark.parametrize("shape", ["normal", "long tail", "sorted"])
def test_ranks_of_cuts_are_within_the_bound(shape):
    rng = np.random.default_rng(0)
    values = rng.normal(size=100_000)
    values = {"normal": values, "long tail": np.exp(2 * values), "sorted": np.sort(values)}[shape].astype(np.float32)
    sketch = QuantileSketch(1, block_rows=256)
    for block in np.array_split(values, 37):
        sketch.add(block[None])
    cuts = sketch.cuts(0, 20)
    assert len(cuts) == 19
    shares = np.searchsorted(np.sort(values), cuts) / len(values)
    num_blocks = len(values) / 256
    assert np.abs(shares - np.arange(1, 20) / 20).max() < np.log2(num_blocks) / (2 * 256)


def test_small_data_is_cut_exactly():
    sketch = QuantileSketch(1)
    sketch.add(np.arange(8, dtype=np.float32)[None])
    assert sketch.cuts(0, 4).tolist() == [1.5, 3.5, 5.5]


def test_few_different_values_are_known_exactly_and_missing_ones_left_out():
    rng = np.random.default_rng(1)
    columns = np.stack([rng.integers(0, 5, 10_000), rng.normal(size=10_000)]).astype(np.float32)
    columns[:, ::3] = np.nan
    sketch = QuantileSketch(2, most_distinct=5, block_rows=512)
    for block in np.array_split(columns, 7, axis=1):
        sketch.add(block)
    assert sketch.distinct(0).tolist() == [0, 1, 2, 3, 4]
    assert sketch.distinct(1) is None
    assert np.isfinite(sketch.cuts(1, 10)).all()


def test_a_column_without_values_has_no_cuts():
    sketch = QuantileSketch(1)
    sketch.add(np.full((1, 10), np.nan, np.float32))
    assert len(sketch.cuts(0, 4)) == 0
    assert len(sketch.distinct(0)) == 0


def test_cuts_do_not_depend_on_how_rows_come_in_blocks():
    values = np.random.default_rng(2).normal(size=(3, 5000)).astype(np.float32)
    found = []
    for parts in (1, 13):
        sketch = QuantileSketch(3, block_rows=128)
        for block in np.array_split(values, parts, axis=1):
            sketch.add(block)
        found.append([sketch.cuts(column, 16).tolist() for column in range(3)])
    assert found[0] == found[1]


@pytest.mark.parametrize("mass", ["at the lowest value", "at the highest value", "in the middle"])
def test_a_frequent_value_has_a_bin_of_its_own_and_leaves_the_others_theirs(mass):
    rng = np.random.default_rng(3)
    rare = np.exp(rng.normal(size=400)).astype(np.float32)
    frequent = {"at the lowest value": 0.0, "at the highest value": 100.0, "in the middle": 1.0}[mass]
    values = np.concatenate([np.full(19_600, frequent, np.float32), rare])
    sketch = QuantileSketch(1, most_distinct=255)
    sketch.add(rng.permutation(values)[None])
    cuts = sketch.cuts(0, 255)
    assert 60 < len(cuts) <= 254
    below = np.searchsorted(cuts, np.float32(frequent))
    in_its_bin = values[np.searchsorted(cuts, values) == below]
    assert set(in_its_bin.tolist()) == {frequent}
