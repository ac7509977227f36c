"""Scanning files gives the dataset that reading them gives, with its features on disk."""

import re
import subprocess
import sys

import numpy as np
import pytest

from rankpolicy.data import read_letor, read_parquet, write_letor, write_parquet
from rankpolicy.data.sets.ranking import make_ranking
from rankpolicy.data.stored import cache, letor, parquet
from rankpolicy.data.stored.features import StoredFeatures
from rankpolicy.data.stored.letor import scan_letor
from rankpolicy.data.stored.parquet import scan_parquet
from rankpolicy.rankers import LambdaMART, PGRank
from rankpolicy.types import RankPolicyError

polars = pytest.importorskip("polars")


@pytest.fixture
def data():
    return make_ranking(40, num_features=6, num_informative=4, random_state=0)


@pytest.fixture
def scan(tmp_path):
    def scanned(path, function=scan_parquet, **options):
        return function(path, cache=tmp_path / "cache", progress=False, **options)

    return scanned


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(parquet, "_BLOCK_ROWS", 100)
    blocks = letor.text_blocks
    monkeypatch.setattr(letor, "text_blocks", lambda file: blocks(file, block_bytes=1000))


def check_same(ours, theirs, tolerance=0.0):
    np.testing.assert_array_equal(ours.labels_by_query, theirs.labels_by_query)
    np.testing.assert_array_equal(ours.query_offsets, theirs.query_offsets)
    np.testing.assert_array_equal(ours.query_ids, theirs.query_ids)
    np.testing.assert_array_equal(ours.source_rows_by_query, theirs.source_rows_by_query)
    np.testing.assert_allclose(np.asarray(ours.features_by_query), theirs.features_by_query, rtol=0, atol=tolerance)


def test_a_parquet_file(data, scan, tmp_path):
    write_parquet(data, tmp_path / "data.parquet")
    found = scan(tmp_path / "data.parquet", stored_as="uint16")
    assert isinstance(found.features_by_query, StoredFeatures)
    check_same(found, read_parquet(tmp_path / "data.parquet"))
    assert found.feature_names == read_parquet(tmp_path / "data.parquet").feature_names
    one_byte = scan(tmp_path / "data.parquet")
    values = data.features_by_query
    assert np.abs(np.asarray(one_byte.features_by_query) - values).mean() < 0.02 * values.std()


def test_values_themselves_are_kept_when_asked_for(data, scan, tmp_path):
    write_parquet(data, tmp_path / "data.parquet")
    check_same(scan(tmp_path / "data.parquet", stored_as="float32"), read_parquet(tmp_path / "data.parquet"))


def test_queries_interleaved_and_split_over_files(data, scan, tmp_path):
    write_parquet(data, tmp_path / "whole.parquet")
    frame = polars.read_parquet(tmp_path / "whole.parquet")
    order = np.random.default_rng(0).permutation(len(frame))
    mixed = frame[order]
    folder = tmp_path / "parts"
    folder.mkdir()
    mixed.write_parquet(tmp_path / "mixed.parquet")
    for number, start in enumerate(range(0, len(mixed), 300)):
        mixed.slice(start, 300).write_parquet(folder / f"part-{number:02}.parquet")
    check_same(scan(folder, stored_as="uint16"), read_parquet(tmp_path / "mixed.parquet"))


def test_ids_groups_and_missing_labels(data, scan, tmp_path):
    write_parquet(data, tmp_path / "data.parquet")
    frame = polars.read_parquet(tmp_path / "data.parquet")
    frame = frame.with_columns(
        item_id=polars.Series([f"d{row}" for row in range(len(frame))]),
        group=polars.Series(["ab"[row % 2] for row in range(len(frame))]),
    )
    frame.write_parquet(tmp_path / "more.parquet")
    found = scan(tmp_path / "more.parquet", item_id="item_id", protected="group")
    theirs = read_parquet(tmp_path / "more.parquet")
    np.testing.assert_array_equal(found.item_ids_by_query, theirs.item_ids_by_query)
    np.testing.assert_array_equal(found.groups_by_query, theirs.groups_by_query)
    unlabelled = scan(tmp_path / "data.parquet", label=None, ignore=["label"])
    assert unlabelled.label_kind == "none"


def test_letor_files(data, scan, tmp_path):
    write_letor(data, tmp_path / "data.txt")
    write_letor(data, tmp_path / "data.txt.gz")
    for name in ("data.txt", "data.txt.gz"):
        check_same(scan(tmp_path / name, scan_letor, stored_as="uint16"), read_letor(tmp_path / name))


def test_a_letor_file_whose_features_count_from_0_and_in_the_middle(scan, tmp_path):
    lines = [f"{row % 2} qid:{row // 4} {row % 3}:{row}.5" for row in range(400)]
    (tmp_path / "data.txt").write_text("\n".join(lines))
    check_same(scan(tmp_path / "data.txt", scan_letor, stored_as="uint16"), read_letor(tmp_path / "data.txt"))


@pytest.mark.parametrize(
    "ranker", [PGRank(epochs=3, num_networks=2), LambdaMART(num_trees=5)], ids=["network", "trees"]
)
def test_rankers_learn_from_disk_what_they_learn_from_memory(data, scan, tmp_path, ranker, monkeypatch):
    # Small data would be scaled at once.
    monkeypatch.setattr("rankpolicy.models.inputs.features._FEW_CELLS", 0)
    if isinstance(ranker, LambdaMART):
        pytest.importorskip("lightgbm")
    write_parquet(data, tmp_path / "data.parquet")
    on_disk = scan(tmp_path / "data.parquet", stored_as="uint16")
    in_memory = read_parquet(tmp_path / "data.parquet")
    ours = ranker.fit(on_disk[:30], valid=on_disk[30:], progress=False).predict(on_disk)
    theirs = ranker.fit(in_memory[:30], valid=in_memory[30:], progress=False).predict(in_memory)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_the_second_scan_opens_the_cache_and_changed_data_makes_another(data, scan, tmp_path, monkeypatch):
    write_parquet(data, tmp_path / "data.parquet")
    first = scan(tmp_path / "data.parquet")
    with monkeypatch.context() as patch:
        patch.setattr(parquet._ParquetFiles, "blocks", lambda _: pytest.fail("read again"))
        check_same(scan(tmp_path / "data.parquet"), first, tolerance=1)
    write_parquet(data[:20], tmp_path / "data.parquet")
    assert scan(tmp_path / "data.parquet").num_queries == 20
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_nothing_is_left_of_a_scan_that_fails(data, scan, tmp_path, monkeypatch):
    write_parquet(data, tmp_path / "data.parquet")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "posix_fallocate", full)
        with pytest.raises(RankPolicyError, match=r"cannot write the cache in .*No space left.*Free some space"):
            scan(tmp_path / "data.parquet")
    assert list((tmp_path / "cache").iterdir()) == []
    assert scan(tmp_path / "data.parquet").num_queries == 40


@pytest.mark.parametrize("most_bytes", [100, 5600, 7000])  # none of the codes; then of what is written after them
def test_a_quota_that_is_too_small_leaves_nothing_and_says_so(data, tmp_path, most_bytes):
    write_parquet(data, tmp_path / "data.parquet")
    code = f"""
import resource, sys
import rankpolicy as rp
resource.setrlimit(resource.RLIMIT_FSIZE, ({most_bytes}, {most_bytes}))
try:
    rp.scan_parquet({str(tmp_path / "data.parquet")!r}, cache={str(tmp_path / "cache")!r}, progress=False)
except rp.RankPolicyError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^cannot write the cache in .*: .*Free some space", done.stdout)
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    "name", ["codes.bin", "rows.npz", "labels.npy", "source_rows.npy", "values.npy", "manifest.json"]
)
def test_a_damaged_cache_is_refused(data, scan, tmp_path, name):
    write_parquet(data, tmp_path / "data.parquet")
    scan(tmp_path / "data.parquet")
    (folder,) = (tmp_path / "cache").iterdir()
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RankPolicyError, match="is damaged"):
        scan(tmp_path / "data.parquet")


def test_data_that_changes_meanwhile_is_refused(data, scan, tmp_path, monkeypatch):
    file = tmp_path / "data.parquet"
    write_parquet(data, file)
    blocks = parquet._ParquetFiles.blocks
    monkeypatch.setattr(parquet._ParquetFiles, "blocks", lambda self: (write_parquet(data[:39], file), blocks(self))[1])
    with pytest.raises(RankPolicyError, match="changed while it was scanned"):
        scan(file)
    assert list((tmp_path / "cache").iterdir()) == []


def test_errors_say_what_to_do(data, scan, tmp_path):
    write_parquet(data, tmp_path / "a.parquet")
    frame = polars.read_parquet(tmp_path / "a.parquet")
    folder = tmp_path / "shards"
    folder.mkdir()
    with pytest.raises(RankPolicyError, match=r"must hold Parquet files"):
        scan(folder)
    frame.write_parquet(folder / "a.parquet")
    frame.drop(frame.columns[-1]).write_parquet(folder / "b.parquet")
    with pytest.raises(RankPolicyError, match=rf"b.parquet must have the columns of .*it has no '{frame.columns[-1]}'"):
        scan(folder)
    whole = (folder / "a.parquet").read_bytes()
    (folder / "b.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RankPolicyError, match=r"b.parquet must be a Parquet file; it cannot be read"):
        scan(folder)
    frame.with_columns(colour=polars.lit("red")).write_parquet(folder / "b.parquet")
    with pytest.raises(RankPolicyError, match=r"feature columns must be numbers; 'colour' is String"):
        scan(folder / "b.parquet")
    with pytest.raises(RankPolicyError, match=r"must have the qid column 'query'"):
        scan(folder / "a.parquet", qid="query")
    last = frame.columns[-1]
    frame.with_columns(
        polars.when(polars.int_range(polars.len()) == 250).then(float("inf")).otherwise(polars.col(last)).alias(last)
    ).write_parquet(folder / "b.parquet")
    with pytest.raises(RankPolicyError, match=rf"row 250, feature '{last}' is inf"):
        scan(folder / "b.parquet")
    (tmp_path / "bad.txt").write_text("1 qid:1 1:2\n" * 200 + "1 qid:1 1:x\n")
    with pytest.raises(RankPolicyError, match=r"bad.txt: line 201: "):
        scan(tmp_path / "bad.txt", scan_letor)


def test_query_ids_are_those_of_read_parquet(data, scan, tmp_path):
    write_parquet(data, tmp_path / "a.parquet")
    frame = polars.read_parquet(tmp_path / "a.parquet")
    folder = tmp_path / "shards"
    folder.mkdir()
    frame.with_columns(qid=polars.col("qid").cast(polars.Int64)).write_parquet(folder / "a.parquet")
    found = scan(folder)
    np.testing.assert_array_equal(found.query_ids, read_parquet(folder / "a.parquet").query_ids.astype(str))
    frame.with_columns(qid=polars.col("qid").cast(polars.String)).write_parquet(folder / "b.parquet")
    with pytest.raises(
        RankPolicyError, match=r"b.parquet: column 'qid' must be of the type that it has in .*Int64; it is String"
    ):
        scan(folder)


def test_blocks_without_items_and_hidden_files_are_left_out(scan, tmp_path):
    folder = tmp_path / "letor"
    folder.mkdir()
    (folder / "._part").write_bytes(b"\0")
    (folder / "a.txt").write_text("# a comment\n\n")
    (folder / "b.txt").write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
    assert scan(folder, scan_letor).num_items == 2


def test_bad_labels_leave_no_cache(data, scan, tmp_path):
    write_parquet(data, tmp_path / "a.parquet")
    frame = polars.read_parquet(tmp_path / "a.parquet")
    bad = polars.when(polars.int_range(polars.len()) == 250).then(-1.0).otherwise(polars.col("label"))
    frame.with_columns(label=bad).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(RankPolicyError, match="row 250 has -1"):
        scan(tmp_path / "a.parquet")
    assert list((tmp_path / "cache").iterdir()) == []


def test_gated_networks_learn_from_disk(scan, tmp_path):
    pytest.importorskip("lightgbm")
    from rankpolicy.rankers import AutoRanker

    write_parquet(make_ranking(40, num_features=6, num_informative=2, random_state=0), tmp_path / "a.parquet")
    ranker = AutoRanker(methods=("lambdamart", "regression"), num_folds=2, jobs=1, time_limit=5)
    on_disk = scan(tmp_path / "a.parquet", stored_as="uint16")
    assert np.isfinite(ranker.fit(on_disk, progress=False).predict(on_disk)).all()
