import dataclasses

import numpy as np
import pandas
import pytest

from rankpolicy.data import RankingDataset, concatenate, from_arrays, read_parquet, split_queries, write_parquet
from rankpolicy.data.click_evidence import ClickEvidence
from rankpolicy.data.fingerprints import fingerprint
from rankpolicy.types import RankPolicyError


@pytest.fixture
def three_queries() -> RankingDataset:
    """Queries b (2 items), a (1 item), c (3 items), their rows interleaved."""
    return from_arrays(
        [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]],
        [0, 1, 2, 0, 0, 0],
        qid=["b", "a", "b", "c", "c", "c"],
        item_ids=list("uvwxyz"),
        protected=[0, 0, 1, 1, 0, 1],
        feature_names=["x"],
    )


def test_rows_of_a_query_come_together_in_order_of_first_appearance(three_queries):
    assert three_queries.query_ids.tolist() == ["b", "a", "c"]
    assert three_queries.query_offsets.tolist() == [0, 2, 3, 6]
    assert three_queries.features_by_query[:, 0].tolist() == [0, 2, 1, 3, 4, 5]
    assert three_queries.labels_by_query.tolist() == [0, 2, 1, 0, 0, 0]
    assert three_queries.item_ids_by_query.tolist() == list("uwvxyz")
    assert three_queries.groups_by_query.tolist() == [0, 1, 0, 1, 0, 1]
    assert three_queries.source_rows_by_query.tolist() == [0, 2, 1, 3, 4, 5]
    assert three_queries.query_numbers.tolist() == [0, 0, 1, 2, 2, 2]
    assert three_queries.sizes.tolist() == [2, 1, 3]
    assert (len(three_queries), three_queries.num_items, three_queries.num_features) == (3, 6, 1)


def test_in_row_order_undoes_the_grouping(three_queries):
    assert three_queries.in_row_order(three_queries.item_ids_by_query).tolist() == list("uvwxyz")
    assert three_queries.in_row_order(three_queries.features_by_query)[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_group_gives_consecutive_queries_named_by_number():
    dataset = from_arrays(np.arange(6).reshape(3, 2), group=[1, 2])
    assert dataset.query_ids.tolist() == ["0", "1"]
    assert dataset.query_offsets.tolist() == [0, 1, 3]
    assert dataset.labels_by_query.tolist() == [0, 0, 0]
    assert dataset.features_by_query.dtype == np.float32


@pytest.mark.parametrize(
    ("qid", "query_ids"),
    [([7, 3, 7], ["7", "3"]), ([7.0, 3.0, 7.0], ["7", "3"]), (np.array(["x", 3, "x"], object), ["x", "3"])],
)
def test_query_ids_are_strings_whatever_came(qid, query_ids):
    assert from_arrays(np.zeros((3, 1)), qid=qid).query_ids.tolist() == query_ids


@pytest.mark.parametrize(
    ("selection", "query_ids"),
    [
        (1, ["a"]),
        (-1, ["c"]),
        (np.int64(0), ["b"]),
        (slice(1, None), ["a", "c"]),
        ([2, 0], ["c", "b"]),
        (np.array([True, False, True]), ["b", "c"]),
    ],
)
def test_selecting_queries(three_queries, selection, query_ids):
    part = three_queries[selection]
    assert part.query_ids.tolist() == query_ids
    items = {"b": "uw", "a": "v", "c": "xyz"}
    assert part.item_ids_by_query.tolist() == list("".join(items[query] for query in query_ids))
    assert part.feature_names == ("x",)


def test_selecting_no_query_is_an_error(three_queries):
    with pytest.raises(RankPolicyError, match="at least one query"):
        three_queries[[]]


def test_concatenate_keeps_queries_apart(three_queries):
    both = concatenate([three_queries, three_queries[0]])
    assert both.query_ids.tolist() == ["b", "a", "c", "b"]
    assert both.query_offsets.tolist() == [0, 2, 3, 6, 8]
    assert both.item_ids_by_query.tolist() == list("uwvxyzuw")
    assert both.source_rows_by_query.tolist() == [0, 2, 1, 3, 4, 5, 6, 8]


def test_concatenate_errors(three_queries):
    with pytest.raises(RankPolicyError, match="at least one dataset"):
        concatenate([])
    with pytest.raises(RankPolicyError, match=r"same number of features; got \[1, 2\]"):
        concatenate([three_queries, from_arrays(np.zeros((1, 2)), group=[1])])
    with pytest.raises(RankPolicyError, match=r"all or none .* item_ids"):
        concatenate([three_queries, from_arrays(np.zeros((1, 1)), [0], group=[1])])


def test_queries_without_relevant_items_can_be_dropped(three_queries):
    assert three_queries.has_relevant_items().tolist() == [True, True, False]
    kept, num_dropped = three_queries.drop_queries_without_relevant_items()
    assert (kept.query_ids.tolist(), num_dropped) == (["b", "a"], 1)
    kept, num_dropped = three_queries.drop_queries_without_relevant_items(relevant_from=2)
    assert (kept.query_ids.tolist(), num_dropped) == (["b"], 2)
    with pytest.raises(RankPolicyError, match=r"no query has an item with label >= 3 \(the highest label is 2\)"):
        three_queries.drop_queries_without_relevant_items(relevant_from=3)


def test_padded_labels(three_queries):
    labels, mask = three_queries.padded_labels()
    assert labels.dtype == np.float32
    assert labels.tolist() == [[0.0, 2, 0], [1, 0, 0], [0, 0, 0]]
    assert mask.tolist() == [[True, True, False], [True, False, False], [True, True, True]]
    assert np.array_equal(three_queries.padding().unpad(labels), three_queries.labels_by_query)


def test_arrays_are_read_only_and_the_givers_stay_writable(three_queries):
    for field in dataclasses.fields(three_queries):
        value = getattr(three_queries, field.name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[:1] = value[:1]
    given = np.zeros((2, 1), np.float32)
    from_arrays(given, group=[2])
    given[0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        three_queries.labels_by_query = given


MATRIX = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": [1.0, 2.0], "group": [2]}, r"must be a matrix .* got 1 dimension.*reshape"),
        ({"features": MATRIX}, "got neither. For a single query use group="),
        ({"features": MATRIX, "qid": [1, 1, 1], "group": [3]}, "exactly one of qid .* and group .* got both"),
        ({"features": MATRIX, "qid": [1, 2]}, r"one query id per row of features, shape \(3,\); got \(2,\)"),
        ({"features": MATRIX, "qid": [1.0, np.nan, 1.0]}, "not fractions or NaN"),
        ({"features": MATRIX, "qid": [0.5, 1.0, 1.0]}, "not fractions or NaN"),
        ({"features": MATRIX, "group": [2, 2]}, "add up to the number of rows, 3; they add up to 4"),
        ({"features": MATRIX, "group": [3, 0]}, "at least one item; group holds 0 at index 1"),
        ({"features": MATRIX, "group": [1.5, 1.5]}, "whole numbers"),
        ({"features": np.zeros((0, 2)), "qid": []}, "at least one query with one item"),
        (
            {"features": MATRIX, "labels": [0, 1], "group": [3]},
            r"labels must have one value per row.*\(3,\); got \(2,\)",
        ),
        ({"features": MATRIX, "labels": [0, -1, 0], "group": [3]}, "labels must be grades.* row 1 has -1"),
        (
            {"features": MATRIX, "labels": [0, np.nan, 0], "group": [3]},
            "labels must be grades.* row 1 has nan",
        ),
        ({"features": MATRIX, "labels": ["a", "b", "c"], "group": [3]}, "labels must be numbers"),
        ({"features": [["x"], ["y"]], "group": [2]}, "features must be numbers"),
        ({"features": [[1.0], [np.inf]], "group": [2]}, "row 1, feature 0 is inf. Scale or clip"),
        ({"features": [[1.0], [1e300]], "group": [2]}, "row 1, feature 0 is inf"),
        ({"features": MATRIX, "group": [3], "item_ids": ["a"]}, "item_ids must have one value per row"),
        ({"features": MATRIX, "group": [3], "protected": [0]}, "protected must have one value per row"),
        ({"features": MATRIX, "group": [3], "feature_names": ["a"]}, "must name 2 features; got 1"),
    ],
)
def test_errors_say_what_must_hold_and_what_came(arguments, message):
    with pytest.raises(RankPolicyError, match=message):
        from_arrays(**arguments)


def test_errors_name_rows_as_they_were_given():
    with pytest.raises(RankPolicyError, match="row 1, feature 0"):
        from_arrays([[0.0], [np.inf], [0.0]], qid=["a", "b", "a"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_offsets": np.array([0, 2, 2, 3, 6])}, "no empty query"),
        ({"query_offsets": np.array([0, 2, 3, 5])}, "from 0 to the number of items, 6"),
        ({"query_ids": np.array(["b"])}, "one id per query"),
        ({"labels_by_query": np.zeros(2, np.float32)}, "labels must have one value per row"),
        ({"features_by_query": np.zeros(6, np.float32)}, "must be a matrix"),
    ],
)
def test_a_dataset_checks_itself(three_queries, changes, message):
    with pytest.raises(RankPolicyError, match=message):
        dataclasses.replace(three_queries, **changes)


def test_what_is_done_to_an_array_afterwards_does_not_reach_the_dataset() -> None:
    features, labels = np.ones((2, 1), np.float32), np.ones(2, np.float32)
    dataset = from_arrays(features, labels, group=[2])
    features[0], labels[0] = np.nan, -1
    assert dataset.features_by_query.tolist() == [[1], [1]]
    assert dataset.labels_by_query.tolist() == [1, 1]


@pytest.mark.parametrize("missing", [None, float("nan"), pandas.NA, pandas.NaT])
def test_a_missing_query_id_is_named(missing: object) -> None:
    with pytest.raises(RankPolicyError, match=r"an id for every row; row 1 has .* Fill it or drop the row"):
        from_arrays(np.zeros((2, 1)), qid=np.array(["nan", missing], dtype=object))
    assert from_arrays(np.zeros((2, 1)), qid=np.array(["nan", "b"], dtype=object)).query_ids.tolist() == ["nan", "b"]


def test_datasets_whose_features_have_other_names_are_not_concatenated() -> None:
    one, other, unnamed = (
        from_arrays(np.zeros((1, 2)), group=[1], feature_names=n) for n in (["a", "b"], ["b", "a"], None)
    )
    with pytest.raises(RankPolicyError, match="same features in the same order; got a, b and b, a"):
        concatenate([one, other])
    assert concatenate([unnamed, one]).feature_names == ("a", "b")


def test_numbers_beyond_float32_are_explained() -> None:
    with pytest.raises(RankPolicyError, match=r"Scale or clip values beyond 3.4e38"):
        from_arrays([[1e300]], group=[1])


def test_the_kind_of_labels_stays_with_parts_of_the_data(three_queries) -> None:
    clicks = dataclasses.replace(
        three_queries, labels_by_query=np.minimum(three_queries.labels_by_query, 1), label_kind="clicks"
    )
    assert from_arrays([[0.0]], [0], group=[1]).label_kind == three_queries.label_kind == "grades"
    assert clicks[1:].label_kind == concatenate([clicks, clicks]).label_kind == "clicks"
    assert {part.label_kind for part in split_queries(clicks, (0.4, 0.6))} == {"clicks"}
    assert repr(clicks) == "RankingDataset(queries=3, items=6, features=1, clicks 0..1)"
    weighted = dataclasses.replace(three_queries, label_kind="relevances", query_weights=np.ones(3))
    assert repr(weighted) == "RankingDataset(queries=3, items=6, features=1, relevances 0..2, weighted)"
    assert fingerprint(clicks) != fingerprint(dataclasses.replace(clicks, label_kind="grades"))


def test_evidence_describes_the_whole_dataset_only(three_queries) -> None:
    evidence = ClickEvidence(weighted="item", num_sessions=3, num_clicks=2, effective_sample_size=1.5)
    learned = dataclasses.replace(three_queries, label_kind="relevances", click_evidence=evidence)
    assert dataclasses.replace(learned, groups_by_query=None).click_evidence == evidence
    assert learned[:2].click_evidence is None
    assert concatenate([learned, learned]).click_evidence is None


def test_labels_that_do_not_fit_their_kind(three_queries) -> None:
    with pytest.raises(RankPolicyError, match="labels that are clicks must be 0 or 1; the highest is 2"):
        dataclasses.replace(three_queries, label_kind="clicks")
    with pytest.raises(RankPolicyError, match=r"Unknown label kind 'click'\. Did you mean 'clicks'"):
        from_arrays([[0.0]], group=[1], label_kind="click")
    relevances = dataclasses.replace(three_queries, label_kind="relevances")
    with pytest.raises(RankPolicyError, match="labels of one kind; got grades and relevances"):
        concatenate([three_queries, relevances])


def test_parquet_keeps_the_kind_of_labels_and_the_weights(three_queries, tmp_path) -> None:
    evidence = ClickEvidence(weighted="item", num_sessions=3, num_clicks=2, effective_sample_size=1.5)
    learned = dataclasses.replace(
        three_queries, label_kind="relevances", click_evidence=evidence, query_weights=np.array([2.0, 0.5, 1.0])
    )
    write_parquet(learned, tmp_path / "learned.parquet")
    same = read_parquet(tmp_path / "learned.parquet")
    assert fingerprint(same) == fingerprint(learned)
    assert same.click_evidence == evidence
    write_parquet(three_queries, tmp_path / "grades.parquet")
    assert read_parquet(tmp_path / "grades.parquet").label_kind == "grades"
    with pytest.raises(RankPolicyError, match="query weights can be written only where query ids are unique"):
        write_parquet(learned[[0, 0]], tmp_path / "twice.parquet")
