import gzip

import polars
import pytest

from rankpolicy.clicks import read_click_log
from rankpolicy.types import RankPolicyError

YANDEX = """\
7\t0\tQ\t12\t3\tu1\tu2\tu3
7\t5\tC\tu2
7\t6\tC\tu2
8\t0\tQ\t12\t3\tu2\tu1
7\t9\tC\tu9
7\t9\tQ\t13\t3\tu3
7\t9\tC\tu3
8\t1\tC\tu1
"""


def written(path, text):
    path.write_text(text)
    return path


def test_yandex_rows(tmp_path):
    """A click belongs to the latest page of its session; repeated ones count once, one on u9 is dropped."""
    log = read_click_log(written(tmp_path / "log.tsv", YANDEX))
    assert log.query_names == ("12_3", "13_3")
    assert log.item_names == ("u1", "u2", "u3")
    assert log.queries.tolist() == [0, 0, 1]
    assert log.items.tolist() == [[0, 1, 2], [1, 0, -1], [2, -1, -1]]
    assert log.clicks.tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]
    assert (log.num_dropped_clicks, log.num_repeated_clicks, log.num_skipped_rows) == (1, 1, 0)
    (tmp_path / "log.tsv.gz").write_bytes(gzip.compress(YANDEX.encode()))
    assert read_click_log(tmp_path / "log.tsv.gz").items.tolist() == log.items.tolist()


def test_rows_of_clicks_may_be_filled_up_with_empty_fields(tmp_path):
    filled = "".join(f"{row}\t\t\n" if "\tC\t" in row else f"{row}\n" for row in YANDEX.splitlines())
    log = read_click_log(written(tmp_path / "log.tsv", filled))
    assert log.clicks.tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]
    with pytest.raises(RankPolicyError, match="expected a page"):
        read_click_log(written(tmp_path / "log.tsv", filled + "99\t0\tC\tu1\t\t\n"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("7\t0\tQ\t12\t3", "line 9: expected 'session time Q query region item ...'"),
        ("7\t0\tX\tu1", "line 9: expected"),
        ("7\t0\tC\tu1\tu2", "line 9: expected"),
        ("7\t0\tQ\t12\t3\tu1\t\tu2", "line 9: expected"),
        ("nonsense", "got 'nonsense'"),
        ("99\t0\tC\tu1", r"line 9: expected a page \(Q\) of session '99' above its click"),
    ],
)
def test_malformed_yandex_rows(tmp_path, row, message):
    path = written(tmp_path / "log.tsv", YANDEX + row + "\n")
    with pytest.raises(RankPolicyError, match=message):
        read_click_log(path)
    log = read_click_log(path, lenient=True)
    assert (log.num_sessions, log.num_skipped_rows) == (3, 1)


def test_nothing_to_read(tmp_path):
    with pytest.raises(RankPolicyError, match="must hold at least one row"):
        read_click_log(written(tmp_path / "log.tsv", "\n"))
    with pytest.raises(RankPolicyError, match="must be a file; there is none"):
        read_click_log(tmp_path / "none.parquet")
    with pytest.raises(RankPolicyError, match=r"Unknown format 'yandx'\. Did you mean 'yandex'"):
        read_click_log(tmp_path / "log.tsv", format="yandx")


ROWS = {
    "session": ["s", "s", "t", "s"],
    "query": ["q", "q", "r", "q"],
    "item": [11, 12, 11, 13],
    "position": [2, 1, 1, 3],
    "clicked": [1, 0, 0, 0],
}


def check_rows(log):
    names = [[log.item_names[item] for item in row if item >= 0] for row in log.items]
    assert names == [["12", "11", "13"], ["11"]]
    assert log.clicks.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert [log.query_names[query] for query in log.queries] == ["q", "r"]


def test_a_row_a_shown_item(tmp_path):
    frame = polars.DataFrame(ROWS)
    frame.write_parquet(tmp_path / "log.parquet")
    frame.write_csv(tmp_path / "log.csv")
    for name in ("log.parquet", "log.csv"):
        check_rows(read_click_log(tmp_path / name))
    from_zero = frame.with_columns(position=polars.col("position") - 1, clicked=polars.col("clicked") == 1)
    from_zero.rename({"item": "URL", "position": "Rank"}).write_csv(tmp_path / "zero.csv")
    check_rows(read_click_log(tmp_path / "zero.csv"))
    frame.rename({"item": "document"}).write_csv(tmp_path / "named.csv")
    check_rows(read_click_log(tmp_path / "named.csv", format="rows", columns={"item": "document"}))
    with pytest.raises(RankPolicyError, match="must have the columns of a click log"):
        read_click_log(tmp_path / "named.csv")
    with pytest.raises(RankPolicyError, match="must have the column 'item'"):
        read_click_log(tmp_path / "named.csv", format="rows")


GOOD = "session,query,item,position,clicked\na,q,x,1,0\na,q,y,2,1\n"


@pytest.mark.parametrize(
    ("row", "message", "num_skipped"),
    [
        ("b,q,x,1,2", "line 4: expected clicked to be 0 or 1", 1),
        ("b,q,x,1,maybe", "line 4: expected clicked to be 0 or 1", 1),
        ("b,q,x,first,0", "line 4: expected position to be a whole number", 1),
        ("b,q,,1,0", "line 4: expected a value for item", 1),
        ("b,q,x,2,0", "line 4: expected the positions of a session to be 1, 2, 3", 1),
        ("b,q,x,1,0\nb,r,y,2,0", "line 5: expected the positions of a session to be 1, 2, 3, ... of one query", 2),
        ("b,q,x,1,0\nb,q,y,1,0", "line 5: expected the positions of a session", 2),
    ],
)
def test_malformed_rows(tmp_path, row, message, num_skipped):
    path = written(tmp_path / "log.csv", GOOD + row + "\n")
    with pytest.raises(RankPolicyError, match=message):
        read_click_log(path)
    log = read_click_log(path, lenient=True)
    assert log.items.tolist() == [[0, 1]]
    assert log.num_skipped_rows == num_skipped


def test_a_line_with_too_many_fields(tmp_path):
    path = written(tmp_path / "log.csv", GOOD + "b,q,x,1,0,0\n")
    with pytest.raises(RankPolicyError, match="line 4 has another number of fields than the header, 5"):
        read_click_log(path)
    assert read_click_log(path, lenient=True).num_sessions == 2


def test_damaged_parquet(tmp_path):
    with pytest.raises(RankPolicyError, match="must be a Parquet file"):
        read_click_log(written(tmp_path / "log.parquet", "not parquet"))


def test_a_row_a_session(tmp_path):
    frame = polars.DataFrame({"query": ["q", "r"], "items": [["x", "y"], ["y"]], "clicks": [[0, 1], [0]]})
    frame.write_parquet(tmp_path / "log.parquet")
    written(tmp_path / "log.csv", "query,items,clicks\nq,x y,0 1\nr,y,0\n")
    written(tmp_path / "json.csv", 'query,items,clicks\nq,"[x, y]","[0, 1]"\nr,[y],[0]\n')
    for name in ("log.parquet", "log.csv", "json.csv"):
        log = read_click_log(tmp_path / name)
        assert log.item_names == ("x", "y")
        assert log.items.tolist() == [[0, 1], [1, -1]]
        assert log.clicks.tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("q,x y,0", "line 3: expected as many clicks as items"),
        ("q,x y,0 7", "line 3: expected clicks to be 0 or 1"),
        (",x,0", "line 3: expected a value for query"),
    ],
)
def test_malformed_sessions(tmp_path, row, message):
    path = written(tmp_path / "log.csv", f"query,items,clicks\nq,x y,0 1\n{row}\n")
    with pytest.raises(RankPolicyError, match=message):
        read_click_log(path)
    log = read_click_log(path, lenient=True)
    assert (log.num_sessions, log.num_skipped_rows) == (1, 1)


def test_rows_of_parquet_are_counted_from_one(tmp_path):
    polars.DataFrame({"query": ["q", "q"], "items": [["x"], ["x"]], "clicks": [[0], [0, 1]]}).write_parquet(
        tmp_path / "log.parquet"
    )
    with pytest.raises(RankPolicyError, match="row 2: expected as many clicks as items"):
        read_click_log(tmp_path / "log.parquet")


def test_counts(tmp_path):
    """What exceeds the impressions are repeated clicks; a row without impressions says nothing."""
    text = "query,url,pos,Impression,Click\nq,x,0,10,4\nq,y,1,3,5\nq,z,1,0,0\n"
    log = read_click_log(written(tmp_path / "counts.csv", text))
    assert not log.has_sessions
    assert log.items.tolist() == [[0, -1], [0, -1], [-1, 1]]
    assert log.clicks.tolist() == [[1, 0], [0, 0], [0, 1]]
    assert log.counts.tolist() == [4, 6, 3]
    assert (log.num_sessions, log.num_clicks, log.num_repeated_clicks) == (13, 7, 2)
    with pytest.raises(RankPolicyError, match="no order to split by"):
        log.split(0.5)
    with pytest.raises(RankPolicyError, match="line 3: expected clicks to be a whole number, 0 or more"):
        read_click_log(written(tmp_path / "bad.csv", "query,item,position,impressions,clicks\nq,x,1,1,1\nq,x,1,9,-1\n"))
    with pytest.raises(RankPolicyError, match="must count at least one impression"):
        read_click_log(written(tmp_path / "none.csv", "query,item,position,impressions,clicks\nq,x,1,0,0\n"))
