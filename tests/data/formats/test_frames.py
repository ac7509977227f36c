import pandas
import polars
import pytest

from rankpolicy.data import from_arrays, from_frame, read_parquet, to_frame, write_parquet
from rankpolicy.data.formats.dataset_files import read_dataset
from rankpolicy.types import RankPolicyError

COLUMNS = {
    "qid": ["b", "a", "b"],
    "bm25": [1.5, 2.5, 3.5],
    "label": [0, 1, 2],
    "length": [10, 20, 30],
    "item_id": ["x", "y", "z"],
    "group": [0, 1, 1],
}


@pytest.fixture(params=[pandas.DataFrame, polars.DataFrame], ids=["pandas", "polars"])
def make_frame(request):
    return request.param


def test_columns_find_their_place(make_frame):
    dataset = from_frame(make_frame(COLUMNS))
    assert dataset.query_ids.tolist() == ["b", "a"]
    assert dataset.features_by_query.tolist() == [[1.5, 10], [3.5, 30], [2.5, 20]]
    assert dataset.feature_names == ("bm25", "length")
    assert dataset.labels_by_query.tolist() == [0, 2, 1]
    assert dataset.item_ids_by_query.tolist() == ["x", "z", "y"]
    assert dataset.groups_by_query.tolist() == [0, 1, 1]
    assert dataset.source_rows_by_query.tolist() == [0, 2, 1]


def test_columns_can_be_named(make_frame):
    frame = make_frame({"query": [1, 1], "grade": [1.0, 0.0], "url": ["u", "v"], "f": [1, 2], "note": ["", ""]})
    dataset = from_frame(frame, qid="query", label="grade", item_id="url", features=["f"])
    assert dataset.query_ids.tolist() == ["1"]
    assert dataset.item_ids_by_query.tolist() == ["u", "v"]
    assert dataset.feature_names == ("f",)


def test_data_still_to_be_ranked(make_frame):
    frame = make_frame({"qid": [1, 1], "f": [1, 2]})
    assert from_frame(frame, label=None).labels_by_query.tolist() == [0, 0]
    with pytest.raises(RankPolicyError, match=r"must have the label column 'label'; it has qid, f\..*label=None"):
        from_frame(frame)


@pytest.mark.parametrize(
    ("changes", "arguments", "message"),
    [
        ({"label": [1, None, 0]}, {}, r"label column 'label' must not have missing values; 1 of 3 are missing\. Fill"),
        ({"bm25": [1.5, float("inf"), 3.5]}, {}, "feature column 'bm25' must be finite; row 1 is inf"),
        ({"bm25": ["a", "b", "c"]}, {}, r"feature column 'bm25' must be numbers; got .*ignore="),
        ({"qid": ["a", None, "b"]}, {}, "qid column 'qid' must not have missing values"),
        ({"label": ["a", "b", "c"]}, {}, "label column 'label' must be numbers"),
        ({"label": [0, -1, 0]}, {}, r"labels must be grades .* row 1 has -1"),
        ({}, {"qid": "query"}, r"must have the qid column 'query'; it has .*qid="),
        ({}, {"features": ["bm25", "missing"]}, "must have the feature columns missing; it has"),
        ({}, {"features": []}, "at least one feature column"),
    ],
)
def test_errors_name_the_column(make_frame, changes, arguments, message):
    with pytest.raises(RankPolicyError, match=message):
        from_frame(make_frame(COLUMNS | changes), **arguments)


def test_what_is_no_frame():
    with pytest.raises(
        RankPolicyError, match=r"must be a pandas or polars DataFrame; got list\. Arrays go to from_arrays"
    ):
        from_frame([[1, 2]])
    with pytest.raises(RankPolicyError, match=r"lazy frame\. Call \.collect"):
        from_frame(polars.DataFrame(COLUMNS).lazy())
    with pytest.raises(RankPolicyError, match="'x' more than once"):
        from_frame(pandas.DataFrame([[1, 0, 2, 3]], columns=["qid", "label", "x", "x"]))


def test_frame_and_parquet_round_trip(tmp_path):
    dataset = from_frame(polars.DataFrame(COLUMNS))
    write_parquet(dataset, tmp_path / "data.parquet")
    for again in (from_frame(to_frame(dataset)), read_parquet(tmp_path / "data.parquet")):
        for field in (
            "features_by_query",
            "labels_by_query",
            "query_offsets",
            "query_ids",
            "item_ids_by_query",
            "groups_by_query",
        ):
            assert getattr(again, field).tolist() == getattr(dataset, field).tolist()
        assert again.feature_names == dataset.feature_names


def test_unnamed_features_get_names_and_clashes_are_errors():
    assert to_frame(from_arrays([[1.0, 2.0]], group=[1])).columns == ["qid", "label", "feature_1", "feature_2"]
    with pytest.raises(RankPolicyError, match=r"feature names must differ .* got 'qid'"):
        to_frame(from_arrays([[1.0]], group=[1], feature_names=["qid"]))


def test_parquet_errors(tmp_path):
    path = tmp_path / "data.parquet"
    with pytest.raises(RankPolicyError, match="there is none"):
        read_parquet(path)
    path.write_text("not parquet")
    with pytest.raises(RankPolicyError, match=r"data\.parquet must be a Parquet file"):
        read_parquet(path)
    polars.DataFrame({"qid": [1]}).write_parquet(path)
    with pytest.raises(RankPolicyError, match=r"data\.parquet: the frame must have the label column"):
        read_parquet(path)


def test_read_dataset_goes_by_the_suffix(tmp_path):
    write_parquet(from_frame(polars.DataFrame(COLUMNS)), tmp_path / "data.parquet")
    (tmp_path / "data.txt").write_text("1 qid:1 1:1\n")
    assert read_dataset(tmp_path / "data.parquet", num_features=2).num_items == 3
    assert read_dataset(tmp_path / "data.txt", num_features=3).num_features == 3
    with pytest.raises(RankPolicyError, match="must have 3 feature columns; it has 2"):
        read_dataset(tmp_path / "data.parquet", num_features=3)


def test_columns_that_pandas_numbered_are_named_by_their_numbers():
    frame = pandas.DataFrame({"qid": [1, 1], "label": [0, 1], 0: [0.5, 1.5]})
    assert from_frame(frame).feature_names == ("0",)


def test_columns_of_a_model_are_found_by_name_and_labels_may_be_missing(tmp_path):
    polars.DataFrame({"text": ["x", "y"], "b": [1, 2], "a": [3, 4], "qid": [1, 1]}).write_parquet(
        tmp_path / "new.parquet"
    )
    dataset = read_dataset(tmp_path / "new.parquet", num_features=2, feature_names=["a", "b"], needs_labels=False)
    assert dataset.features_by_query.tolist() == [[3, 1], [4, 2]]
    with pytest.raises(RankPolicyError, match="must have the label column 'label'"):
        read_dataset(tmp_path / "new.parquet", num_features=2)
