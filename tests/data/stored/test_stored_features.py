"""Features on disk stand in the place of an array: every reader sees the values that the array would have."""

import numpy as np
import pytest

from rankpolicy.data import from_arrays
from rankpolicy.data.fingerprints import fingerprint
from rankpolicy.data.rows import ScaledRows
from rankpolicy.data.scaling import SCALINGS, fit_scaling
from rankpolicy.data.stored import codebook, features
from rankpolicy.data.stored.codebook import BinMeans, Cuts, QuantileSketch
from rankpolicy.data.stored.features import CodeTable, StoredFeatures
from rankpolicy.types import RankPolicyError

torch = pytest.importorskip("torch")


def stored(matrix, dtype="uint8"):
    """Features as a scan stores them, here in memory."""
    columns = np.ascontiguousarray(matrix.T)
    sketch = QuantileSketch(len(columns), most_distinct=codebook.MOST_CODES[dtype])
    sketch.add(columns)
    cuts = Cuts.of_sketch(sketch, dtype)
    codes = cuts.codes(columns)
    means = BinMeans(len(columns), cuts.num_codes)
    means.add(columns, codes)
    return StoredFeatures(codes, means.values())


def example(num_rows=600, *, missing=False):
    rng = np.random.default_rng(0)
    matrix = np.stack([rng.normal(size=num_rows), rng.integers(0, 4, num_rows), np.full(num_rows, 7.0)], axis=1)
    if missing:
        matrix[::5, 0] = np.nan
    return matrix.astype(np.float32)


def datasets(matrix, kept):
    """The same data with features on disk, and with the values that they decode to in memory."""
    sizes = np.full(len(matrix) // 6, 6)
    labels = np.arange(len(matrix)) % 3
    in_memory = from_arrays(np.asarray(kept), labels, group=sizes)
    return _replaced(in_memory, kept), in_memory


def _replaced(dataset, kept):
    from dataclasses import replace

    return replace(dataset, features_by_query=kept)


@pytest.fixture(params=[True, False], ids=["numba", "numpy"])
def kernels(request, monkeypatch):
    for module in (codebook, features):
        monkeypatch.setattr(module, "HAS_NUMBA", module.HAS_NUMBA and request.param)


def test_few_values_are_kept_exactly_and_others_by_the_mean_of_their_bin(kernels):
    matrix = example(missing=True)
    decoded = np.asarray(stored(matrix))
    np.testing.assert_array_equal(decoded[:, 1:], matrix[:, 1:])
    np.testing.assert_array_equal(np.isnan(decoded), np.isnan(matrix))
    present = ~np.isnan(matrix[:, 0])
    # 480 different values in 255 bins of about two: the error is within the distance to the next but one.
    ordered = np.sort(matrix[present, 0])
    assert np.abs(decoded[present, 0] - matrix[present, 0]).max() <= np.diff(ordered).max() * 2
    assert len(np.unique(decoded[present, 0])) <= 255


def test_two_bytes_keep_more_values(kernels):
    matrix = example(4000)
    np.testing.assert_array_equal(np.asarray(stored(matrix, "uint16")), matrix)


def test_rows_and_columns_are_those_of_the_array():
    kept = stored(example())
    dense = np.asarray(kept)
    rows = np.array([5, 2, 2, 599])
    np.testing.assert_array_equal(np.asarray(kept[rows]), dense[rows])
    np.testing.assert_array_equal(np.asarray(kept[10:20][3:5]), dense[10:20][3:5])
    np.testing.assert_array_equal(np.asarray(kept[rows][1:3]), dense[rows][1:3])
    np.testing.assert_array_equal(np.asarray(kept[dense[:, 1] > 1]), dense[dense[:, 1] > 1])
    np.testing.assert_array_equal(kept[:, 1], dense[:, 1])
    assert kept[3, 0] == dense[3, 0]
    assert kept.shape == dense.shape
    assert kept[rows].shape == (4, 3)


@pytest.mark.parametrize("missing", [False, True])
def test_codes_are_counted(kernels, missing):
    kept = stored(example(missing=missing))
    counts = kept[::2].counts()
    assert (counts.sum(axis=1) == 300).all()
    for feature in range(3):
        values, times = np.unique(kept[::2][:, feature], return_counts=True)
        np.testing.assert_array_equal(times, counts[feature][counts[feature] > 0])
        assert len(values) == (counts[feature] > 0).sum()


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", sorted(SCALINGS))
def test_a_scaling_is_fitted_and_applied_as_in_memory(kernels, kind, missing):
    on_disk, in_memory = datasets(example(), stored(example(missing=missing)))
    ours, theirs = fit_scaling(kind, on_disk), fit_scaling(kind, in_memory)
    for name, array in theirs.to_arrays().items():
        np.testing.assert_allclose(ours.to_arrays()[name], array, rtol=1e-5, atol=1e-6, err_msg=name)
    if ours.needs_queries:
        return
    rows = torch.tensor([4, 1, 100])
    read = ScaledRows(on_disk.features, ours, torch.device("cpu"))[rows]
    np.testing.assert_allclose(read.numpy(), ours.apply(np.asarray(in_memory.features)[rows.numpy()]), rtol=1e-6)


def test_parts_of_a_dataset_stay_on_disk():
    on_disk, in_memory = datasets(example(), stored(example()))
    part = on_disk[[3, 1]]
    assert isinstance(part.features, StoredFeatures)
    np.testing.assert_array_equal(np.asarray(part.features), in_memory[[3, 1]].features)
    assert fingerprint(on_disk) != fingerprint(part)
    assert fingerprint(part) == fingerprint(on_disk[[3, 1]])


def test_columns_that_are_functions_of_a_feature():
    kept = stored(example())
    table = CodeTable(np.concatenate([kept.values, -kept.values[:1]]), np.array([0, 1, 2, 0]))
    dense = np.asarray(kept)
    np.testing.assert_array_equal(table.read(kept[:5]), np.concatenate([dense[:5], -dense[:5, :1]], axis=1))


def test_columns_stay_on_disk_too_and_one_row_is_an_array():
    kept = stored(example(missing=True))
    dense = np.asarray(kept)
    part = kept[10:50][:, [2, 0]]
    assert isinstance(part, StoredFeatures)
    np.testing.assert_array_equal(np.asarray(part), dense[10:50][:, [2, 0]])
    np.testing.assert_array_equal(part[:, 1], dense[10:50, 0])
    np.testing.assert_array_equal(part.counts(), kept[10:50].counts()[[2, 0]])
    np.testing.assert_array_equal(kept[7], dense[7])
    np.testing.assert_array_equal(kept[:, :2][[3, 1]], dense[[3, 1], :2])


def test_a_copy_opens_the_same_file(tmp_path):
    import pickle

    kept = stored(example())
    codes = np.memmap(tmp_path / "codes.bin", kept.codes.dtype, "w+", shape=kept.codes.shape)
    codes[:] = kept.codes
    codes.flush()
    part = StoredFeatures(np.memmap(tmp_path / "codes.bin", codes.dtype, "r", shape=codes.shape), kept.values)[5:300]
    packed = pickle.dumps(part)
    assert len(packed) < 20_000
    np.testing.assert_array_equal(np.asarray(pickle.loads(packed)), np.asarray(kept)[5:300])
    (tmp_path / "codes.bin").unlink()
    with pytest.raises(RankPolicyError, match="there are no stored features at"):
        pickle.loads(packed)


def test_codes_of_a_damaged_file_read_as_missing(kernels):
    kept = stored(example())
    damaged = StoredFeatures(np.full_like(kept.codes, 255), kept.values[:, :5])
    assert np.isnan(np.asarray(damaged)).sum() == np.isnan(kept.values[:, 4]).sum() * len(kept)
    assert damaged.counts().sum() == 3 * len(kept)
