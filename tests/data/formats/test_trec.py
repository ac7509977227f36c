import numpy as np
import pytest

from rankpolicy.data import from_arrays, read_qrels, read_run, write_qrels, write_run
from rankpolicy.types import RankPolicyError


@pytest.fixture
def dataset():
    return from_arrays(np.zeros((4, 1)), [2, 0, 1, 0], qid=["a", "b", "a", "a"], item_ids=["x", "x", "y", "z"])


def test_qrels(dataset, tmp_path):
    path = tmp_path / "qrels"
    write_qrels(dataset, path)
    assert path.read_text() == "a 0 x 2\na 0 y 1\na 0 z 0\nb 0 x 0\n"
    assert read_qrels(path) == {"a": {"x": 2, "y": 1, "z": 0}, "b": {"x": 0}}


def test_run_is_ranked_by_score_and_ties_keep_their_order(dataset, tmp_path):
    path = tmp_path / "run.gz"
    write_run(dataset, np.array([0.5, 1.0, 0.75, 0.5], np.float32), path, tag="mine")
    assert read_run(path) == {"a": {"y": 0.75, "x": 0.5, "z": 0.5}, "b": {"x": 1.0}}
    write_run(dataset, [0.5, 1.0, 0.75, 0.5], tmp_path / "run", tag="mine")
    lines = (tmp_path / "run").read_text().splitlines()
    assert lines == ["a Q0 y 1 0.75 mine", "a Q0 x 2 0.5 mine", "a Q0 z 3 0.5 mine", "b Q0 x 1 1.0 mine"]


def test_rows_stand_in_for_missing_item_ids(tmp_path):
    write_qrels(from_arrays(np.zeros((3, 1)), [1, 0, 2], qid=["a", "b", "a"]), tmp_path / "qrels")
    assert read_qrels(tmp_path / "qrels") == {"a": {"0": 1, "2": 2}, "b": {"1": 0}}


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (read_qrels, "a 0 x 1\na 0 y\n", r"line 2: expected 4 words, qid 0 docid relevance; got 3 in 'a 0 y'"),
        (read_qrels, "a 0 x 1.5\n", r"line 1: expected a whole number as relevance; got '1\.5'"),
        (read_qrels, "a 0 x 1\na 0 x 2\n", "line 2: expected each item of a query once; 'x' of query 'a' comes again"),
        (read_qrels, "\n", "the file is empty"),
        (read_run, "a Q0 x 1 high tag\n", "line 1: expected a number as score; got 'high'"),
        (read_run, "a Q0 x 1 nan tag\n", "expected a number as score; got 'nan'"),
        (read_run, "a Q0 x 1 0.5\n", "expected 6 words, qid Q0 docid rank score tag; got 5"),
        (read_run, b"a Q0 \xe9 1 0.5 t\n", "line 1: expected UTF-8 text"),
    ],
)
def test_malformed_files(tmp_path, reader, text, message):
    path = tmp_path / "file"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(RankPolicyError, match=message):
        reader(path)


def test_what_cannot_be_written(dataset, tmp_path):
    path = tmp_path / "file"
    with pytest.raises(RankPolicyError, match=r"one value per item, shape \(4,\); got \(3,\)"):
        write_run(dataset, [1, 2, 3], path)
    with pytest.raises(RankPolicyError, match="scores must be finite; item 1 has nan"):
        write_run(dataset, [1, np.nan, 3, 4], path)
    with pytest.raises(RankPolicyError, match="tag must be a word"):
        write_run(dataset, [1, 2, 3, 4], path, tag="a b")
    with pytest.raises(RankPolicyError, match=r"different ids .* query 'a' has 'x' twice"):
        write_qrels(from_arrays(np.zeros((2, 1)), qid=["a", "a"], item_ids=["x", "x"]), path)
    with pytest.raises(RankPolicyError, match="item_ids must be words"):
        write_qrels(from_arrays(np.zeros((1, 1)), qid=["a"], item_ids=["x y"]), path)
    with pytest.raises(RankPolicyError, match=r"whole numbers in a qrels file; row 0 has 0\.5"):
        write_qrels(from_arrays(np.zeros((1, 1)), [0.5], qid=["a"]), path)
    assert not path.exists()
