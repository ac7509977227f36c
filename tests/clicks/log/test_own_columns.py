"""Logs with columns of their own names, and lists that hold an item twice."""

import polars
import pytest

from rankpolicy.clicks import log_from_lists, read_click_log
from rankpolicy.types import RankPolicyError

ROWS = {
    "visit": [1, 1, 2],
    "search": ["a", "a", "b"],
    "shown_item": ["x", "y", "x"],
    "pos": [1, 2, 1],
    "clicked": [0, 1, 0],
}
COLUMNS = {"session": "visit", "query": "search", "item": "shown_item", "rank": "pos"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_layout_is_recognised_by_the_columns_that_are_named(tmp_path, suffix):
    path = tmp_path / f"log.{suffix}"
    getattr(polars.DataFrame(ROWS), f"write_{suffix}")(path)
    log = read_click_log(path, columns=COLUMNS)
    assert (log.query_names, log.item_names, log.clicks.tolist()) == (("a", "b"), ("x", "y"), [[0, 1], [0, 0]])
    with pytest.raises(RankPolicyError, match="--columns item=document"):
        read_click_log(path)
    with pytest.raises(RankPolicyError, match="Did you mean 'item'"):
        read_click_log(path, columns={"itm": "x"})


def test_one_column_of_two_names_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    polars.DataFrame(ROWS).write_csv(path)
    assert read_click_log(path, columns=COLUMNS | {"position": "pos"}).num_sessions == 2
    with pytest.raises(RankPolicyError, match="one column 'position'; got 'pos' and 'visit'"):
        read_click_log(path, columns=COLUMNS | {"position": "visit"})


def test_an_item_twice_in_one_list_is_refused(tmp_path):
    with pytest.raises(RankPolicyError, match="row 1, of the query 'b', has 'x' twice"):
        log_from_lists(["a", "b"], [["x"], ["x", "y", "x"]], [[0], [0, 1, 0]])
    polars.DataFrame(ROWS | {"shown_item": ["x", "x", "x"]}).write_csv(tmp_path / "log.csv")
    with pytest.raises(
        RankPolicyError, match=r"line 3: expected every item of a session once; got .*query='a', item='x'"
    ):
        read_click_log(tmp_path / "log.csv", columns=COLUMNS)
    assert read_click_log(tmp_path / "log.csv", columns=COLUMNS, lenient=True).query_names == ("b",)
    (tmp_path / "lists.csv").write_text("query,items,clicks\na,x y x,0 1 0\n")
    with pytest.raises(RankPolicyError, match=r"line 2: expected every item of a list once; got query='a'"):
        read_click_log(tmp_path / "lists.csv")
