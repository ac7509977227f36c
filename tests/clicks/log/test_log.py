import numpy as np
import pytest

from rankpolicy.clicks import log_from_lists, make_click_log, make_click_model
from rankpolicy.clicks.log.log_pairs import pairs_of
from rankpolicy.types import RankPolicyError
from tests.clicks.log.logs import random_log


def test_lists_of_different_length_are_padded():
    log = log_from_lists(["a", "b"], [["x", "y"], ["y"]], [[0, 1], [1]])
    assert log.items.tolist() == [[0, 1], [1, -1]]
    assert log.clicks.tolist() == [[0, 1], [1, 0]]
    assert (log.num_sessions, log.num_clicks, log.num_positions) == (2, 2, 2)


def test_collapsed_sessions_keep_counts_and_order():
    log = log_from_lists(["a", "b", "a", "a"], [["x"], ["x"], ["x"], ["x"]], [[0], [0], [1], [0]], counts=[1, 2, 3, 4])
    small = log.collapsed()
    assert small.queries.tolist() == [0, 1, 0]
    assert small.clicks[:, 0].tolist() == [0, 0, 1]
    assert small.counts.tolist() == [5, 2, 3]


def test_a_split_takes_the_last_sessions_of_each_query():
    log = log_from_lists(list("ababaab"), [[number] for number in range(7)], [[0]] * 7)
    train, test = log.split(0.5)
    assert train.items[:, 0].tolist() == [0, 1, 2, 3]
    assert test.items[:, 0].tolist() == [4, 5, 6]
    for fraction in (0, 1, -0.5):
        with pytest.raises(RankPolicyError, match="test_fraction must lie between 0 and 1"):
            log.split(fraction)
    with pytest.raises(RankPolicyError, match="leaves nothing to test on"):
        log.split(0.1)


def test_one_query():
    log = random_log(50)
    assert (log.of_query("1").queries == log.query_names.index("1")).all()
    with pytest.raises(RankPolicyError, match="no query 'nine'"):
        log.of_query("nine")


def test_a_log_in_other_codes_is_seen_by_names():
    table = pairs_of(log_from_lists(["a", "b"], [["x", "y"], ["y"]], [[0, 0], [0]]))
    other = log_from_lists(["c", "b", "a"], [["x"], ["z", "y"], ["y", "x"]], [[0], [0, 0], [0, 0]])
    view = table.view(other)
    unknown = len(table)
    assert view.pairs.tolist() == [[unknown, unknown], [unknown, 2], [1, 0]]
    assert view.is_shown.tolist() == [[True, False], [True, True], [True, True]]
    assert table.codes("a", ["y", "z"]).tolist() == [1, unknown]
    assert table.codes("c", ["y"]).tolist() == [unknown]


def test_pairs_are_found_alike_when_many_names_are_possible():
    """Few sessions and many names take the way of searching, not that of a table."""
    log = random_log(30)
    wide = type(log)(
        query_names=log.query_names + tuple(f"q{n}" for n in range(500)),
        item_names=log.item_names + tuple(f"i{n}" for n in range(500)),
        queries=log.queries,
        items=log.items,
        clicks=log.clicks,
        counts=log.counts,
    )
    few, many = pairs_of(log), pairs_of(wide)
    assert many.queries.tolist() == few.queries.tolist()
    assert many.items.tolist() == few.items.tolist()
    np.testing.assert_array_equal(many.view(wide).pairs, few.view(log).pairs)


@pytest.mark.parametrize(
    ("queries", "items", "clicks", "message"),
    [
        (["a"], [["x"]], [[0, 1]], "row 0 has 1 items and 2 marks"),
        (["a"], [["x"], ["y"]], [[0], [0]], "one row per session; got 1, 2 and 2"),
        (["a"], [["x"]], [[2]], "clicks must be 0 or 1; got 2"),
        (["a"], [[]], [[]], "every session at least one item"),
        ([], [], [], "at least one session"),
    ],
)
def test_bad_lists(queries, items, clicks, message):
    with pytest.raises(RankPolicyError, match=message):
        log_from_lists(queries, items, clicks)


def test_made_lists_hold_distinct_items_of_their_query():
    log = make_click_log(make_click_model("dbn", random_state=0), 500, random_state=1)
    assert all(len(set(row)) == 5 for row in log.items.tolist())
    with pytest.raises(RankPolicyError, match="every query must have 7 items"):
        make_click_log(make_click_model("dbn", random_state=0), 500, num_positions=7, random_state=1)
