"""From shown lists to a click log, and on to an estimate of the position bias."""

import numpy as np
import polars
import pytest

import rankpolicy as rp
from rankpolicy.clicks.log.log_files import click_log_of, read_click_log
from rankpolicy.data import from_arrays, from_click_table
from rankpolicy.types import RankPolicyError

ROWS = {
    "session": [1, 1, 2, 2, 2, 3],
    "query_text": ["tea", "tea", "rum", "rum", "rum", "tea"],
    "item_text": ["pot", "cup", "jug", "cup", "pot", "pot"],
    "position": [2, 1, 1, 2, 3, 1],
    "clicked": [1, 0, 0, 0, 1, 1],
}


def test_sessions_of_one_query_text_are_of_one_query():
    log = click_log_of(from_click_table(polars.DataFrame(ROWS)))
    assert log.query_names == ("tea", "rum")
    assert log.queries.tolist() == [0, 1, 0]
    names = np.array([*log.item_names, "-"])
    assert names[log.items].tolist() == [["cup", "pot", "-"], ["jug", "cup", "pot"], ["pot", "-", "-"]]
    assert log.clicks.tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


def test_items_go_by_their_ids_where_these_are_known():
    log = click_log_of(from_click_table(polars.DataFrame({**ROWS, "item_id": list("pcjcpP")})))
    assert log.item_names == ("c", "p", "j", "P")


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([3, 1, 1, 2, 3, 1], r"positions 1, 2, 3, \.\.\. without a gap; query '1' has position 3 where 2 was expected"),
        ([2, 1, 1, 2, 3, 2], r"query '3' has position 2 where 1 was expected"),
        (None, "needs the position each item was shown at; the dataset has none"),
    ],
)
def test_lists_that_are_not_whole_are_refused(positions, message):
    rows = {**ROWS, "position": positions} if positions else {k: v for k, v in ROWS.items() if k != "position"}
    with pytest.raises(RankPolicyError, match=message):
        click_log_of(from_click_table(polars.DataFrame(rows)))


def test_features_without_shown_lists_are_refused():
    with pytest.raises(RankPolicyError, match="needs the position"):
        click_log_of(from_arrays([[1.0]], [0], group=[1]))


def test_the_bias_of_a_click_table_can_be_estimated():
    random = np.random.default_rng(0)
    num_sessions = 6000
    chance = np.array([0.8, 0.4])  # of a look at positions 1 and 2; who looks clicks
    first = random.integers(0, 2, num_sessions)
    table = polars.DataFrame(
        {
            "session": np.repeat(np.arange(num_sessions), 2),
            "query_text": "tea",
            "item_text": np.array(["pot", "cup"])[np.column_stack([first, 1 - first]).ravel()].tolist(),
            "position": np.tile([1, 2], num_sessions),
            "clicked": (random.random((num_sessions, 2)) < chance).astype(int).ravel(),
        }
    )
    bias = rp.estimate_position_bias(click_log_of(from_click_table(table)), method="all-pairs")
    # The standard error of a ratio of two means of 6000 marks is below 0.01.
    np.testing.assert_allclose(bias.propensities, [1.0, 0.5], atol=0.04)


def test_a_click_table_can_be_read_as_a_log(tmp_path):
    path = tmp_path / "table.csv"
    polars.DataFrame({**ROWS, "price": [1, 2, 3, 4, 5, 6]}).write_csv(path)
    log, same = read_click_log(path), click_log_of(from_click_table(polars.DataFrame(ROWS)))
    assert (log.query_names, log.item_names) == (same.query_names, same.item_names)
    assert (log.items == same.items).all()
    assert (log.clicks == same.clicks).all()
    with pytest.raises(RankPolicyError, match="a click table cannot be read with lenient: leave it out"):
        read_click_log(path, lenient=True)
