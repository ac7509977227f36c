"""Click tables from frames and files: sessions, roles, side columns, and what is refused."""

import gzip

import numpy as np
import polars
import pytest

from rankpolicy.data import from_click_table, read_click_table
from rankpolicy.data.formats.dataset_files import read_dataset
from rankpolicy.types import RankPolicyError

ROWS = {
    "query_text": ["tea", "bread", "tea", "bread", "tea"],
    "item_text": ["pot", "loaf", "cup", "roll", "pot"],
    "position": [2, 1, 1, 2, 1],
    "clicked": [1, 0, 0, 1, 0],
    "timestamp": [10, 20, 10, 20, 30],
    "user": ["ann", "bob", "ann", "bob", "ann"],
    "price": [9.5, None, 3.0, 2.0, 9.5],
    "kind": ["pots", "food", None, "food", "pots"],
    "is_new": [True, False, None, True, True],
}


def frame_of(**changes):
    return polars.DataFrame({name: values for name, values in {**ROWS, **changes}.items() if values is not ...})


def check_the_three_sessions(dataset):
    assert dataset.query_offsets.tolist() == [0, 2, 4, 5]
    assert dataset.source_rows_by_query.tolist() == [2, 0, 1, 3, 4]
    assert dataset.texts_by_query.queries == ("tea", "bread", "tea")
    assert [dataset.texts_by_query.item(item) for item in range(5)] == ["cup", "pot", "loaf", "roll", "pot"]
    assert dataset.labels_by_query.tolist() == [0, 1, 0, 1, 0]
    assert dataset.shown_by_query.ranks.tolist() == [1, 2, 1, 2, 1]
    assert dataset.shown_by_query.users.tolist() == ["ann", "bob", "ann"]
    assert dataset.shown_by_query.times.tolist() == [10, 20, 30]
    assert dataset.side_by_query.categories["kind"].tolist() == ["", "pots", "food", "food", "pots"]
    np.testing.assert_array_equal(dataset.side_by_query.numbers["price"], np.float32([3, 9.5, np.nan, 2, 9.5]))
    np.testing.assert_array_equal(dataset.side_by_query.numbers["is_new"], np.float32([np.nan, 1, 0, 1, 1]))
    assert dataset.side_by_query.names == ("price", "is_new", "kind")


@pytest.mark.parametrize("library", ["polars", "pandas", "pandas-nullable"])
def test_rows_of_one_query_user_and_time_are_a_session_ordered_by_position(library):
    frame = frame_of()
    if library != "polars":
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(ROWS)
        if library == "pandas-nullable":
            frame = frame.convert_dtypes().astype({"kind": "category"})
    check_the_three_sessions(from_click_table(frame))


@pytest.mark.parametrize("name", ["clicks.parquet", "clicks.csv", "clicks.csv.gz", "clicks.csv.zst"])
def test_files_give_the_same_as_the_frame(name, tmp_path):
    path = tmp_path / name
    if name.endswith("parquet"):
        frame_of().write_parquet(path)
    else:
        text = frame_of().write_csv().encode()
        if name.endswith("gz"):
            text = gzip.compress(text)
        if name.endswith("zst"):
            text = pytest.importorskip("zstandard").compress(text)
        path.write_bytes(text)
    check_the_three_sessions(read_click_table(path))
    check_the_three_sessions(read_dataset(path))


def test_a_session_column_decides_and_its_earliest_row_is_its_time():
    dataset = from_click_table(
        frame_of(session=[7, 8, 7, 8, 9], timestamp=[12, 20, 11, 21, 30], item_id=["p", "l", "c", "r", "p"])
    )
    assert dataset.query_ids.tolist() == ["7", "8", "9"]
    assert dataset.shown_by_query.times.tolist() == [11, 20, 30]
    assert dataset.item_ids_by_query.tolist() == ["c", "p", "l", "r", "p"]


def test_columns_of_other_names_and_a_choice_of_side_columns():
    frame = frame_of(shop=[3, 3, 4, None, 3]).rename({"query_text": "q", "clicked": "hit"})
    roles = {"query_text": "q", "clicked": "hit"}
    dataset = from_click_table(frame, columns=roles, side=["shop", "price"], categories=["shop"])
    assert dataset.side_by_query.names == ("price", "shop")
    assert dataset.side_by_query.categories["shop"].tolist() == ["4", "3", "3", "", "3"]
    assert from_click_table(frame, columns=roles, side=[]).side_by_query is None


def test_fractions_that_pandas_makes_of_whole_numbers_are_named_as_whole_ones():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"query_text": "q", "item_text": ["a", "b"], "shop": [3, None]})
    dataset = from_click_table(frame, categories=["shop"], needs_clicks=False)
    assert dataset.side_by_query.categories["shop"].tolist() == ["3", ""]


def test_pandas_categories_stay_categories_whatever_they_are_made_of():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"query_text": "q", "item_text": ["a", "b"], "shop": pandas.Categorical([3, None])})
    assert from_click_table(frame, needs_clicks=False).side_by_query.categories["shop"].tolist() == ["3", ""]


def test_csv_keeps_texts_of_digits_names_with_leading_zeros_and_reads_truth_as_numbers(tmp_path):
    (tmp_path / "a.csv").write_text(
        "query_text,item_text,clicked,code,size,is_new,empty\n105,7,True,007,40,True,\n105,8,False,100,,False,\n"
    )
    dataset = read_click_table(tmp_path / "a.csv")
    assert dataset.texts_by_query.queries == ("105",)
    assert dataset.labels_by_query.tolist() == [1, 0]
    assert dataset.side_by_query.categories["code"].tolist() == ["007", "100"]
    assert dataset.side_by_query.numbers["is_new"].tolist() == [1, 0]
    np.testing.assert_array_equal(dataset.side_by_query.numbers["size"], np.float32([40, np.nan]))
    assert np.isnan(dataset.side_by_query.numbers["empty"]).all()
    kept = read_click_table(tmp_path / "a.csv", categories=["size"])
    assert kept.side_by_query.categories["size"].tolist() == ["40", ""]


@pytest.mark.parametrize(
    "times",
    [
        ["1970-01-02 00:00:01", "1970-01-01 00:00:00"],
        ["1970-01-02T00:00:01Z", "1970-01-01T00:00:00Z"],
        ["86401", "0"],
        [86401.0, 0.0],
        polars.Series(["1970-01-02 00:00:01", "1970-01-01 00:00:00"]).str.to_datetime(),
        polars.Series(["1970-01-02 02:00:01+02:00", "1970-01-01 00:00:00Z"]).str.to_datetime(time_zone="UTC"),
    ],
    ids=["text", "zone", "digits", "numbers", "datetime", "aware"],
)
def test_times_become_seconds(times):
    dataset = from_click_table(
        polars.DataFrame({"query_text": "q", "item_text": "a", "clicked": 0, "timestamp": times})
    )
    assert dataset.shown_by_query.times.tolist() == [86401, 0]


def test_dates_and_pandas_times_with_a_zone_become_seconds():
    pandas = pytest.importorskip("pandas")
    rows = {"query_text": ["q"], "item_text": ["a"], "clicked": [0]}
    dates = polars.DataFrame({**rows, "timestamp": ["1970-01-02"]}).with_columns(polars.col("timestamp").str.to_date())
    assert from_click_table(dates).shown_by_query.times.tolist() == [86400]
    zoned = pandas.DataFrame({**rows, "timestamp": pandas.to_datetime(["1970-01-02 02:00:00+02:00"])})
    assert from_click_table(zoned).shown_by_query.times.tolist() == [86400]


def test_positions_from_0_become_ranks_from_1():
    rows = {"query_text": ["q", "q"], "item_text": ["a", "b"], "clicked": [0, 1], "position": [1, 0]}
    assert from_click_table(polars.DataFrame(rows)).shown_by_query.ranks.tolist() == [1, 2]


def test_data_to_rank_may_have_texts_only():
    rows = {"query_text": ["q", "r", "q"], "item_text": ["a", "b", "c"]}
    dataset = from_click_table(polars.DataFrame(rows), needs_clicks=False)
    assert dataset.query_offsets.tolist() == [0, 2, 3]
    assert dataset.shown_by_query is None
    assert dataset.side_by_query is None
    unfilled = polars.DataFrame({**rows, "clicked": [None] * 3})
    assert from_click_table(unfilled, needs_clicks=False).labels_by_query.tolist() == [0, 0, 0]
    with pytest.raises(RankPolicyError, match=r"row 0: clicked must be 0 or 1; got None"):
        from_click_table(unfilled)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"query_text": ["tea", " ", "tea", "bread", "tea"]},
            "row 1: query_text must be a text that is not empty; got ' '",
        ),
        (
            {"item_text": ["pot", "loaf", None, "roll", "pot"]},
            "row 2: item_text must be a text that is not empty; got None",
        ),
        ({"clicked": [1, 0, 2, 0, 0]}, "row 2: clicked must be 0 or 1; got 2"),
        ({"clicked": ["yes", "no", "no", "no", "no"]}, "row 0: clicked must be 0 or 1; got 'yes'"),
        (
            {"position": [2, 1, 2, 2, 1]},
            r"row 2: position must be another for each row of a session \(rows of the same",
        ),
        (
            {"position": [2, 1, 2, 2, 1], "session": [1, 2, 1, 2, 3]},
            "row 2: position must be another for each row of a session;",
        ),
        ({"position": [2.0, 1.5, 1, 2, 1]}, "row 1: position must be a whole number, 1 or more; got 1.5"),
        ({"position": [2, None, 1, 2, 1]}, "row 1: position must be a whole number, 1 or more; got None"),
        (
            {"timestamp": ["10", "soon", "10", "20", "30"]},
            "row 1: timestamp must be a time: seconds, or a date such as",
        ),
        ({"timestamp": [10, None, 10, 20, 30]}, "row 1: timestamp must be a time"),
        ({"user": ["ann", "bob", "", "bob", "ann"]}, "row 2: user must be a name; got ''"),
        ({"session": [1, 1, 1, 2, 3]}, "row 1: query_text must be the same in all rows of a session; got 'bread'"),
        ({"session": [1, 2, 1, 2, 3], "user": list("aabbc")}, "row 2: user must be the same in all rows of a session"),
        ({"price": [1.0, 2.0, np.inf, 1.0, 1.0]}, "row 2: price must be finite in float32, or missing; got inf"),
        ({"clicked": [[1]] * 5}, "the column 'clicked' must hold one value per row; it holds List"),
        ({"price": [[1]] * 5}, r"side column 'price' must hold numbers or texts; it holds List"),
        ({"clicked": ...}, r"must have the column 'clicked'; it has query_text, .*needs_clicks=False"),
        ({"item_text": ...}, r"the frame must have the column 'item_text'; .*columns=\{\"item_text\""),
    ],
)
def test_values_that_do_not_fit_are_refused_with_their_row(changes, message):
    with pytest.raises(RankPolicyError, match=message):
        from_click_table(frame_of(**changes))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": {"query_txt": "q"}}, r"Unknown column 'query_txt'. Did you mean 'query_text'\?"),
        ({"columns": {"user": "who"}}, "must have the column 'who'"),
        ({"side": ["prise"]}, r"the frame, side: Unknown column 'prise'. Did you mean 'price'\?"),
        ({"side": ["position"]}, "'position' has a role of its own"),
        ({"side": "price"}, r"side must be a list of texts or None; got 'price'. Write \['price'\]"),
        ({"side": ["price"], "categories": ["kind"]}, "categories: Unknown column 'kind'"),
    ],
)
def test_options_that_name_nothing_are_refused(options, message):
    with pytest.raises(RankPolicyError, match=message):
        from_click_table(frame_of(), **options)


def test_what_is_no_frame_with_rows_is_refused():
    with pytest.raises(RankPolicyError, match="the frame must hold at least one row"):
        from_click_table(frame_of()[:0])
    with pytest.raises(RankPolicyError, match="got a lazy frame"):
        from_click_table(frame_of().lazy())
    with pytest.raises(RankPolicyError, match="must be a pandas or polars DataFrame; got list"):
        from_click_table([[1]])
    pandas = pytest.importorskip("pandas")
    mixed = pandas.DataFrame({"query_text": ["q", "q"], "item_text": ["a", "b"], "clicked": [0, 1], "size": [1, "S"]})
    with pytest.raises(RankPolicyError, match="'size' must hold values of one kind"):
        from_click_table(mixed)
    twice = pandas.DataFrame([["q", "a", 1, 2]], columns=["query_text", "item_text", "clicked", "clicked"])
    with pytest.raises(RankPolicyError, match="'clicked' more than once"):
        from_click_table(twice)


def test_an_error_in_a_file_names_the_line_where_the_row_starts(tmp_path):
    (tmp_path / "a.csv").write_text('query_text,item_text,clicked\ntea,"a pot\nof clay",1\ntea,cup,maybe\n')
    with pytest.raises(RankPolicyError, match=r"a\.csv, line 4: clicked must be 0 or 1; got 'maybe'"):
        read_click_table(tmp_path / "a.csv")
    frame_of(clicked=[0, 0, 3, 0, 0]).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(RankPolicyError, match=r"a\.parquet, row 2: clicked must be 0 or 1; got 3"):
        read_click_table(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("query_text,item_text\ntea,pot,3\n")
    with pytest.raises(RankPolicyError, match=r"b\.csv must be a CSV file; it cannot be read"):
        read_click_table(tmp_path / "b.csv")
    (tmp_path / "b.csv").write_text("query_text,item_text,clicked,size,size\ntea,pot,1,2,3\n")
    with pytest.raises(RankPolicyError, match=r"b\.csv: column names must differ; 'size' occurs more than once"):
        read_click_table(tmp_path / "b.csv")
    (tmp_path / "c.parquet").write_text("no")
    with pytest.raises(RankPolicyError, match=r"c\.parquet must be a Parquet file"):
        read_click_table(tmp_path / "c.parquet")
    (tmp_path / "d.csv").write_text("")
    with pytest.raises(RankPolicyError, match=r"d\.csv"):
        read_click_table(tmp_path / "d.csv")
