"""Off-policy logs from CSV files and frames with names of queries and items."""

import numpy as np
import polars
import pytest

import rankpolicy as rp
from rankpolicy.off_policy import OffPolicyLog, estimate_policy_value, read_off_policy_log
from rankpolicy.types import RankPolicyError

COLUMNS = {"session": "visit", "query": "search", "item": "shown_item", "position": "pos", "propensity": "p"}


@pytest.fixture
def dataset():
    return rp.data.from_arrays(
        np.arange(5.0)[:, None], np.zeros(5), qid=["b", "b", "b", "a", "a"], item_ids=["x", "y", "z", "x", "w"]
    )


@pytest.fixture
def frame():
    rows = [
        (1, "b", "z", 1, 0, 0.5), (1, "b", "x", 2, 1, 0.25), (2, "a", "w", 2, 0, 1.0), (2, "a", "x", 1, 1, 0.5),
    ]  # fmt: skip
    return polars.DataFrame(rows, schema=["visit", "search", "shown_item", "pos", "clicked", "p"], orient="row")


def test_names_become_the_numbers_of_the_dataset(frame, dataset, tmp_path):
    frame.write_csv(tmp_path / "log.csv")
    expected = OffPolicyLog(
        items=[[2, 0], [0, 1]], rewards=[[0, 1], [1, 0]], contexts=[0, 1], propensities=[[0.5, 0.25], [0.5, 1.0]]
    )
    for source in (frame, frame.to_pandas(), tmp_path / "log.csv"):
        log = read_off_policy_log(source, dataset, columns=COLUMNS)
        for name in ("items", "rewards", "contexts", "propensities"):
            np.testing.assert_array_equal(getattr(log, name), getattr(expected, name))
    ranker = rp.Regression(model="linear").fit(dataset.features, np.arange(5.0), qid=[0, 0, 0, 1, 1], progress=False)
    policy = ranker.policy(dataset)
    assert estimate_policy_value(log, policy).value == estimate_policy_value(expected, policy).value


@pytest.mark.parametrize(
    ("change", "columns", "message"),
    [
        ({}, {}, "must have the column 'session'"),
        ({}, {"itm": "x"}, "Did you mean 'item'"),
        ({"pos": [1, 3, 2, 1]}, COLUMNS, "must be 1, 2, 3"),
        ({"shown_item": ["z", "q", "w", "x"]}, COLUMNS, "no item 'q' of query 'b'"),
        ({"shown_item": ["z", "z", "w", "x"]}, COLUMNS, "once|twice|different|more than"),
    ],
)
def test_what_does_not_fit_is_named(frame, dataset, change, columns, message):
    changed = frame.with_columns(**{name: polars.Series(values) for name, values in change.items()})
    with pytest.raises(RankPolicyError, match=message):
        read_off_policy_log(changed, dataset, columns=columns)
