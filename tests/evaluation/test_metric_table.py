import numpy as np
import pytest

from rankpolicy.evaluation import MetricTable
from rankpolicy.types import Conventions, RankPolicyError

TABLE = MetricTable(
    query_ids=np.array(["a", "b", "c"]),
    names=("map", "mean(ap, rr)"),
    values=np.array([[1.0, 0.25], [0.5, 0.75], [np.nan, np.nan]]),
    conventions=Conventions(empty="skip"),
)


def test_means_leave_skipped_queries_out_and_say_so() -> None:
    assert TABLE.means == {"map": 0.75, "mean(ap, rr)": 0.5}
    assert TABLE.num_counted == {"map": 2, "mean(ap, rr)": 2}


def test_columns_are_found_by_any_of_their_names() -> None:
    np.testing.assert_array_equal(TABLE["map"], [1.0, 0.5, np.nan])
    np.testing.assert_array_equal(TABLE["ap"], TABLE["map"])
    np.testing.assert_array_equal(TABLE["0.5*rr+0.5*ap"], TABLE["mean(ap, rr)"])
    with pytest.raises(RankPolicyError, match=r"no metric 'ndcg'; it has map, mean\(ap, rr\)"):
        TABLE["ndcg"]


def test_as_text_with_its_conventions() -> None:
    assert str(TABLE).splitlines() == [
        "metric          mean  95% interval      queries",
        "map           0.7500  [0.5000, 1.0000]        2",
        "mean(ap, rr)  0.5000  [0.2500, 0.7500]        2",
        "conventions: gain=exp2, empty=skip, relevant_from=1, max_label=4, ties=expected",
    ]
    assert repr(TABLE) == "MetricTable(queries=3, map 0.7500, mean(ap, rr) 0.5000)"


def test_as_trec_eval_prints_it() -> None:
    assert TABLE.to_trec().splitlines() == [
        "map\ta\t1.0000",
        "mean(ap, rr)\ta\t0.2500",
        "map\tb\t0.5000",
        "mean(ap, rr)\tb\t0.7500",
        "map\tall\t0.7500",
        "mean(ap, rr)\tall\t0.5000",
    ]


def test_as_json() -> None:
    document = TABLE.to_dict(per_query=True)
    assert document["metrics"]["map"] == {"mean": 0.75, "interval": [0.5, 1.0], "queries": 2}
    assert document["conventions"]["empty"] == "skip"
    assert document["per_query"][2] == {"query": "c", "map": None, "mean(ap, rr)": None}
    assert "per_query" not in TABLE.to_dict()


def test_as_a_frame() -> None:
    frame = TABLE.to_frame()
    assert frame.columns == ["query_id", "map", "mean(ap, rr)"]
    assert frame["map"].to_list() == [1.0, 0.5, None]


def test_a_table_of_skipped_queries_only() -> None:
    table = MetricTable(query_ids=np.array(["a"]), names=("ap",), values=np.array([[np.nan]]))
    assert table.to_dict()["metrics"]["ap"] == {"mean": None, "interval": [None, None], "queries": 0}
    assert "nan" in str(table)


def test_values_must_fit_the_names() -> None:
    with pytest.raises(RankPolicyError, match=r"one row per query and one column per metric, \(1, 2\); got \(2, 1\)"):
        MetricTable(query_ids=np.array(["a"]), names=("ap", "rr"), values=np.zeros((2, 1)))
