"""A log that is read in blocks holds the counts of the log that is read at once."""

from itertools import pairwise

import numpy as np
import polars
import pytest

import rankpolicy as rp
from rankpolicy.clicks import make_click_log, make_click_model, read_click_log, scan_click_log
from rankpolicy.clicks.log import scanned_log as scan
from rankpolicy.executors import Processes
from rankpolicy.types import RankPolicyError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(scan, "_BLOCK_ROWS", 70)
    monkeypatch.setattr(scan, "_LEAST_PENDING", 50)


def sessions(log):
    """The log as a frame with one row per session."""
    shown = [[int(item) for item in row if item >= 0] for row in log.items]
    return polars.DataFrame(
        {
            "query": [log.query_names[query] for query in log.queries],
            "items": [[log.item_names[item] for item in row] for row in shown],
            "clicks": [row[: len(own)].tolist() for row, own in zip(log.clicks, shown, strict=True)],
        }
    )


def rows(frame):
    """The same with one row per item shown."""
    numbered = frame.with_row_index("session").explode("items", "clicks").rename({"items": "item", "clicks": "clicked"})
    return numbered.with_columns(position=polars.int_range(1, polars.len() + 1).over("session"))


@pytest.fixture
def frame():
    model = make_click_model("dbn", num_queries=6, num_items=8, num_positions=4, random_state=0)
    return sessions(make_click_log(model, 900, random_state=0))


def check_same(ours, theirs):
    assert ours.query_names == theirs.query_names
    assert ours.item_names == theirs.item_names
    for name in ("queries", "items", "clicks", "counts"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)


@pytest.mark.parametrize("layout", ["sessions", "rows"])
def test_shards_are_merged_into_counts(frame, tmp_path, layout):
    folder = tmp_path / "shards"
    folder.mkdir()
    table = frame if layout == "sessions" else rows(frame)
    table.write_parquet(tmp_path / "whole.parquet")
    if layout == "sessions":
        cuts = [0, 100, 400, len(table)]
    else:
        starts = np.flatnonzero(np.diff(table["session"].to_numpy(), prepend=-1))
        cuts = [0, int(starts[100]), int(starts[400]), len(table)]
    for number, (start, stop) in enumerate(pairwise(cuts)):
        table.slice(start, stop - start).write_parquet(folder / f"{number}.parquet")
    whole = read_click_log(tmp_path / "whole.parquet").collapsed()
    check_same(scan_click_log(folder), whole)
    check_same(scan_click_log(tmp_path / "whole.parquet"), whole)
    assert read_click_log(folder).num_sessions == 900


def test_counts_are_merged(tmp_path):
    table = polars.DataFrame(
        {
            "query": ["a", "a", "b"] * 40,
            "item": ["x", "y", "x"] * 40,
            "position": [1, 2, 1] * 40,
            "impressions": 3,
            "clicks": 1,
        }
    )
    table.write_parquet(tmp_path / "counts.parquet")
    log = scan_click_log(tmp_path / "counts.parquet")
    assert not log.has_sessions
    check_same(log, read_click_log(tmp_path / "counts.parquet").collapsed())


@pytest.mark.parametrize("model", ["ubm", "dbn", "pbm"])
def test_click_models_are_fitted_as_to_the_whole_log(frame, tmp_path, model):
    frame.write_parquet(tmp_path / "log.parquet")
    ours = rp.fit_click_model(model, scan_click_log(tmp_path / "log.parquet"))
    theirs = rp.fit_click_model(model, read_click_log(tmp_path / "log.parquet"))
    log = read_click_log(tmp_path / "log.parquet")
    np.testing.assert_allclose(ours.click_probabilities(log), theirs.click_probabilities(log), rtol=0, atol=1e-9)


def test_columns_may_have_other_names(frame, tmp_path):
    frame.rename({"items": "Documents"}).write_parquet(tmp_path / "log.parquet")
    assert scan_click_log(tmp_path / "log.parquet", columns={"items": "Documents"}).num_sessions == 900


def test_errors_name_file_and_row(frame, tmp_path):
    with pytest.raises(RankPolicyError, match="must hold Parquet files"):
        scan_click_log(tmp_path)
    frame.drop("clicks").write_parquet(tmp_path / "log.parquet")
    with pytest.raises(RankPolicyError, match="must have the columns of a click log"):
        scan_click_log(tmp_path / "log.parquet")
    broken = frame.with_columns(
        clicks=polars.when(polars.int_range(polars.len()) == 500)
        .then(polars.col("clicks").list.head(1))
        .otherwise("clicks")
    )
    broken.write_parquet(tmp_path / "log.parquet")
    with pytest.raises(RankPolicyError, match=r"log.parquet, row 501: expected as many clicks as items"):
        scan_click_log(tmp_path / "log.parquet")
    assert scan_click_log(tmp_path / "log.parquet", lenient=True).num_skipped_rows == 1


def test_blocks_without_a_good_row_are_skipped_where_others_have_some(frame, tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    frame.with_columns(clicks=polars.col("clicks").list.head(1)).write_parquet(folder / "a.parquet")
    with pytest.raises(RankPolicyError, match="must hold at least one good row"):
        scan_click_log(folder, lenient=True)
    frame.write_parquet(folder / "b.parquet")
    log = scan_click_log(folder, lenient=True)
    assert (log.num_sessions, log.num_skipped_rows) == (900, 900)


def numbered(frame):
    """The same log with numbers as names."""
    return frame.with_columns(
        query=polars.col("query").str.extract(r"(\d+)").cast(polars.Int32),
        items=polars.col("items").list.eval(polars.element().str.extract(r"(\d+)").cast(polars.Int32)),
    )


def test_names_may_be_numbers_and_shards_may_differ_in_that(frame, tmp_path):
    table = numbered(frame)
    table.write_parquet(tmp_path / "whole.parquet")
    whole = read_click_log(tmp_path / "whole.parquet").collapsed()
    check_same(scan_click_log(tmp_path / "whole.parquet"), whole)
    folder = tmp_path / "shards"
    folder.mkdir()
    texts = {"query": polars.String, "items": polars.List(polars.String)}
    marks = {"clicks": polars.List(polars.Boolean)}
    for number, (types, start) in enumerate([({}, 0), (texts, 300), (marks, 600)]):
        table.slice(start, 300).cast(types).write_parquet(folder / f"{number}.parquet")
    check_same(scan_click_log(folder), whole)


@pytest.mark.parametrize("executor", ["serial", Processes(2), Processes(4)])
def test_the_log_does_not_depend_on_where_its_files_are_read(frame, tmp_path, executor):
    table = numbered(frame)
    for number in range(9):
        table.slice(100 * number, 100).write_parquet(tmp_path / f"{number}.parquet")
    check_same(scan_click_log(tmp_path, executor=executor), scan_click_log(tmp_path))
    bad = table.slice(0, 5).with_columns(clicks=polars.col("clicks").list.head(1))
    bad.write_parquet(tmp_path / "5.parquet")
    with pytest.raises(RankPolicyError, match=r"5.parquet, row 1: expected"):
        scan_click_log(tmp_path, executor=executor)
    log = scan_click_log(tmp_path, executor=executor, lenient=True)
    assert (log.num_sessions, log.num_skipped_rows) == (800, 5)


def test_sessions_are_counted_before_they_are_read(frame, tmp_path, monkeypatch):
    numbered(frame).write_parquet(tmp_path / "log.parquet")
    monkeypatch.setattr(scan, "_BLOCK_ROWS", 1000)
    seen = []
    read = scan.clicks_of_frame
    monkeypatch.setattr(scan, "clicks_of_frame", lambda rows, *a, **k: (seen.append(len(rows)), read(rows, *a, **k))[1])
    log = scan_click_log(tmp_path / "log.parquet")
    assert sum(seen) == len(log) < 900


@pytest.mark.parametrize(
    "spoilt",
    [
        polars.col("clicks").list.eval(polars.element() * 2),
        polars.col("clicks").list.eval(polars.when(polars.element() == 0).then(polars.element())),
        polars.lit([], polars.List(polars.Int8)).alias("clicks"),
        polars.lit(None, polars.Int32).alias("query"),
        polars.col("items").list.eval(polars.lit(None, polars.Int32)),
    ],
)
def test_a_malformed_row_is_found_among_good_ones(frame, tmp_path, spoilt):
    table = numbered(frame).cast({"clicks": polars.List(polars.Int8)})
    marked = int(np.flatnonzero(table["clicks"].list.sum().to_numpy() > 0)[200])
    parts = [table.slice(0, marked), table.slice(marked, 1).with_columns(spoilt), table.slice(marked + 1)]
    polars.concat([part.cast(table.schema) for part in parts]).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(RankPolicyError, match=rf"log.parquet, row {marked + 1}: expected"):
        scan_click_log(tmp_path / "log.parquet")
    log = scan_click_log(tmp_path / "log.parquet", lenient=True)
    assert (log.num_sessions, log.num_skipped_rows) == (899, 1)


def test_a_shard_of_another_kind_or_cut_short_is_named(frame, tmp_path):
    frame.write_parquet(tmp_path / "a.parquet")
    frame.drop("clicks").write_parquet(tmp_path / "b.parquet")
    with pytest.raises(RankPolicyError, match=r"b.parquet must have the column 'clicks'"):
        scan_click_log(tmp_path)
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RankPolicyError, match=r"b.parquet"):
        scan_click_log(tmp_path)


def test_a_name_that_no_column_has_is_refused(frame, tmp_path):
    frame.write_parquet(tmp_path / "log.parquet")
    with pytest.raises(RankPolicyError, match=r"Unknown column of a click log 'itms'\. Did you mean 'items'"):
        scan_click_log(tmp_path / "log.parquet", columns={"itms": "items"})
