import gzip
import os
import stat
import sys

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from rankpolicy.data import from_arrays, read_letor, write_letor
from rankpolicy.types import MissingDependencyError, RankPolicyError


@pytest.fixture(params=["kernel", "plain"])
def reader(request, monkeypatch):
    """Both ways to read: the compiled kernel, and the grammar that stands in where numba is missing."""
    if request.param == "plain":
        monkeypatch.setattr("rankpolicy.data.formats.letor_text.HAS_NUMBA", False)
    return read_letor


@pytest.fixture
def file(tmp_path):
    def write(content: str | bytes, name: str = "data.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_a_letor_file(reader, file):
    dataset = reader(
        file(
            "2 qid:10 1:0.5 2:1 3:-0.25 #docid = GX01 inc = 1 prob = 0.08\r\n"
            "0 qid:10 1:1e-3 2:1E+5 3:.5 #docid = GX02\r\n"
            "1.0 qid:11 1:5. 2:+1 3:0 #docid=GX03\r\n"
        )
    )
    assert dataset.features_by_query.tolist() == [[0.5, 1, -0.25], [np.float32(1e-3), 1e5, 0.5], [5, 1, 0]]
    assert dataset.labels_by_query.tolist() == [2, 0, 1]
    assert dataset.query_ids.tolist() == ["10", "11"]
    assert dataset.query_offsets.tolist() == [0, 2, 3]
    assert dataset.item_ids_by_query.tolist() == ["GX01", "GX02", "GX03"]


def test_sparse_rows_blank_lines_comments_and_tabs(reader, file):
    dataset = reader(file("# made by hand\n\n 1\tqid:a\t3:1 \n \t\n0 qid:a\n\r\n# the end\n0 qid:b 1:2"))
    assert dataset.features_by_query.tolist() == [[0, 0, 1], [0, 0, 0], [2, 0, 0]]
    assert dataset.source_rows_by_query.tolist() == [0, 1, 2]
    assert dataset.item_ids_by_query is None


def test_queries_may_be_apart(reader, file):
    dataset = reader(file("0 qid:z 1:1\n0 qid:a 1:2\n1 qid:z 1:3\n"))
    assert dataset.query_ids.tolist() == ["z", "a"]
    assert dataset.features_by_query[:, 0].tolist() == [1, 3, 2]
    assert dataset.source_rows_by_query.tolist() == [0, 2, 1]


def test_features_in_any_order(reader, file):
    assert reader(file("0 qid:1 3:3 1:1 2:2\n")).features_by_query.tolist() == [[1, 2, 3]]


def test_feature_zero_makes_ids_count_from_zero(reader, file):
    assert reader(file("0 qid:1 1:1 2:2\n0 qid:1 0:5\n")).features_by_query.tolist() == [[0, 1, 2], [5, 0, 0]]
    assert reader(file("0 qid:1 0:5\n"), num_features=2).features_by_query.tolist() == [[5, 0]]


def test_wider_lines_after_the_first(reader, file):
    assert reader(file("0 qid:1 1:1\n0 qid:1 4:4\n")).features_by_query.tolist() == [[1, 0, 0, 0], [0, 0, 0, 4]]


def test_num_features_sets_the_width(reader, file):
    path = file("0 qid:1 1:1\n0 qid:1 3:3\n")
    assert reader(path, num_features=5).features_by_query.shape == (2, 5)
    with pytest.raises(RankPolicyError, match=r"line 2: expected feature ids up to 2, as num_features=2 says; got 3"):
        reader(path, num_features=2)
    with pytest.raises(RankPolicyError, match="num_features must be a whole number, 1 or more; got 0"):
        reader(path, num_features=0)


def test_item_ids_from_comments_of_every_kind(reader, file):
    dataset = reader(file("0 qid:1 1:1 # a page \n0 qid:1 1:1\n0 qid:1 1:1#é\n0 qid:1 1:1 #\n0 qid:1 1:1 #docid = \n"))
    assert dataset.item_ids_by_query.tolist() == ["a page", "", "é", "", "docid ="]


def test_byte_order_mark(reader, file):
    assert reader(file(b"\xef\xbb\xbf1 qid:1 1:1\n")).labels_by_query.tolist() == [1]


@pytest.mark.parametrize(
    ("name", "pack"), [("data.txt.gz", gzip.compress), ("data.txt.zst", zstandard.ZstdCompressor().compress)]
)
def test_packed_files(reader, file, name, pack):
    text = b"0 qid:1 1:1\n" * 500 + b"1 qid:2 1:2"
    assert reader(file(pack(text), name)).num_items == 501
    with pytest.raises(RankPolicyError, match=f"{name} must be a whole .* file; it is truncated or damaged"):
        reader(file(pack(text)[:-9], name))


def test_a_missing_package_is_named(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rankpolicy\[frames\]'"):
        read_letor(file(zstandard.ZstdCompressor().compress(b"0 qid:1 1:1\n"), "data.txt.zst"))


@pytest.mark.parametrize("sidecar", ["rank.train.query", "rank.train.group"])
@pytest.mark.parametrize("name", ["rank.train", "rank.train.gz"])
def test_sizes_of_queries_beside_the_file(reader, file, sidecar, name):
    text = b"1 1:0.5\n0 2:1\n0 1:1\n"
    path = file(gzip.compress(text) if name.endswith(".gz") else text, name)
    file("2\n1\n", sidecar)
    assert reader(path).query_offsets.tolist() == [0, 2, 3]
    file("2\n2\n", sidecar)
    with pytest.raises(RankPolicyError, match=rf"{sidecar} must add up to the items of {name}, 3; they add up to 4"):
        reader(path)
    file("2\nmany\n", sidecar)
    with pytest.raises(RankPolicyError, match=rf"{sidecar}, line 2: expected the number of items .* got 'many'"):
        reader(path)


def test_neither_qid_nor_sidecar(reader, file):
    with pytest.raises(
        RankPolicyError, match=r"expected qid.*or the sizes .* in data.txt.query or data.txt.group; got neither"
    ):
        reader(file("1 1:0.5\n"))


GOOD = "1 qid:1 1:1 2:2\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x qid:1 1:1", "expected a label first, a number 0 or more; got 'x'"),
        ("-1 qid:1 1:1", "expected a label that is 0 or more and finite; got '-1'"),
        ("1e99 qid:1 1:1", "expected a label that is 0 or more and finite; got '1e99'"),
        ("nan qid:1 1:1", "expected a label first"),
        ("1 qid:1 3:abc", "finite decimal number as value; got '3:abc'"),
        ("1 qid:1 3:", "finite decimal number as value; got '3:'"),
        ("1 qid:1 3:nan", "finite decimal number as value; got '3:nan'"),
        ("1 qid:1 3:inf", "finite decimal number as value; got '3:inf'"),
        ("1 qid:1 3:1e39", "finite decimal number as value; got '3:1e39'"),
        ("1 qid:1 3:1_0", "finite decimal number as value; got '3:1_0'"),
        ("1 qid:1 3:1.2.3", "finite decimal number as value"),
        ("1 qid:1 3:1e", "finite decimal number as value"),
        ("1 qid:1 3:--1", "finite decimal number as value"),
        ("1 qid:1 3:.", "finite decimal number as value"),
        ("1 qid:1 abc", "whole number as feature; got 'abc'"),
        ("1 qid:1 0.5", "whole number as feature; got '0.5'"),
        ("1 qid:1 -3:1", "whole number as feature; got '-3:1'"),
        ("1 qid:1 a:1", "whole number as feature; got 'a:1'"),
        ("1 qid:1 3 :1", "whole number as feature; got '3'"),
        ("1 qid:1 3:1 3:2", "each feature once; feature 3 comes 2 times"),
        ("1 qid:1 99999999999:1", "feature id up to 2147483647"),
        ("1 qid: 3:1", "expected a query id after 'qid:'; got none"),
        ("1 3:1", "expected qid:<query id> after the label, as on the lines before; got none"),
        ("1", "expected qid:<query id> after the label"),
        ("1 qid:1 qid:2 3:1", "one qid, right after the label; got another, 'qid:2'"),
        ("1 qid:1 1:1 \0", "expected text; got a zero byte"),
        ("1 qid:1 1:1 # a\0b", "expected text; got a zero byte"),
        ("1 qid:1 " + "y" * 5000, "got 'y{40}...'"),
    ],
)
def test_a_malformed_line_is_named(reader, file, line, message):
    # Twice: behind good lines, where the kernel meets it first, and as the first line.
    with pytest.raises(RankPolicyError, match=rf"data\.txt: line 3: .*{message}"):
        reader(file(GOOD + GOOD + line + "\n" + GOOD))
    if "lines before" not in message and line not in ("1", "1 3:1"):
        with pytest.raises(RankPolicyError, match=rf"data\.txt: line 1: .*{message}"):
            reader(file(line))


def test_the_first_malformed_line_is_the_one_named(reader, file):
    with pytest.raises(RankPolicyError, match=r"line 2: .*'2:b'"):
        reader(file(GOOD + "1 qid:1 2:b\n" + "x\n" * 5000))


def test_a_qid_after_lines_without(reader, file):
    with pytest.raises(RankPolicyError, match="line 2: expected no qid, as on the lines before"):
        reader(file("1 1:1\n1 qid:1 1:1\n"))


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n"])
def test_an_empty_file(reader, file, content):
    with pytest.raises(RankPolicyError, match="expected at least one item; the file is empty or holds only comments"):
        reader(file(content))


def test_a_file_without_features(reader, file):
    with pytest.raises(RankPolicyError, match="no line holds a feature:value pair"):
        reader(file("1 qid:1\n"))
    assert reader(file("1 qid:1\n"), num_features=2).features_by_query.tolist() == [[0, 0]]


def test_bytes_that_are_not_text(reader, file):
    with pytest.raises(RankPolicyError, match=r"line 2: expected UTF-8 text; got b'caf.xe9'"):
        reader(file(GOOD.encode() + b"1 qid:1 1:1 #docid = caf\xe9\n"))
    with pytest.raises(RankPolicyError, match="line 1: "):
        reader(file(bytes(range(128, 256))))


def test_features_too_wide_for_memory(reader, file):
    with pytest.raises(RankPolicyError, match=r"features are kept as a dense matrix\. Number the features"):
        reader(file("1 qid:1 2000000000:1\n" * 10))


def test_missing_file_and_directory(reader, tmp_path):
    with pytest.raises(RankPolicyError, match=r"nowhere.txt must be a file; there is none"):
        reader(tmp_path / "nowhere.txt")
    with pytest.raises(RankPolicyError, match=r"must be a file; it is a directory. .*read_folds"):
        reader(tmp_path)


number_texts = st.one_of(
    st.floats(-(2.0**100), 2.0**100, width=32).map(repr),
    st.floats(-1e30, 1e30).map(lambda value: f"{value:.17g}"),
    st.decimals(-1000, 1000, places=6).map(lambda value: f"{value:f}"),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"[+-]?([0-9]{1,25}\.[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1})?", fullmatch=True),
    st.sampled_from(
        ["16777217", "16777217.0000000000000000001", "1e-45", "7e-46", "1e-400", "3.4028235e38", "0e999", "-0"]
    ),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.lists(number_texts, min_size=3, max_size=3), min_size=1, max_size=8))
def test_numbers_are_those_of_python(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("numbers") / "data.txt"
    path.write_text("".join(f"0 qid:1 1:{a} 2:{b} 3:{c}\n" for a, b, c in rows))
    expected = np.array([[float(text) for text in row] for row in rows]).astype(np.float32)
    np.testing.assert_array_equal(read_letor(path).features_by_query, expected)


line_texts = st.one_of(
    st.from_regex(r"[0-2] qid:[ab1]{1,2}( [1-4]:[0-9]\.[0-9]{1,3}){0,3} ?(#(docid ?= ?)?[A-Z ]{0,4})?", fullmatch=True),
    st.lists(
        st.sampled_from(["1", "qid:7", "1:2", "2:.5", ":", "#", "docid = x", " ", "\t", "\r", "e", "-", "é", "4:1e2"])
    ).map("".join),
    st.lists(st.sampled_from(["1", "qid:7", "1:2", "2:.5", "#docid = x y", "nan", "3:-1e-2", "0:1"])).map(" ".join),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(line_texts, min_size=1, max_size=6))
def test_the_kernel_does_what_the_grammar_says(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("lines") / "data.txt"
    path.write_bytes("\n".join(texts).encode())

    def outcome(has_numba: bool):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rankpolicy.data.formats.letor_text.HAS_NUMBA", has_numba)
            try:
                data = read_letor(path)
            except RankPolicyError as error:
                return str(error)
        item_ids = None if data.item_ids_by_query is None else data.item_ids_by_query.tolist()
        return (
            data.features_by_query.tolist(),
            data.labels_by_query.tolist(),
            data.query_ids.tolist(),
            data.query_offsets.tolist(),
            item_ids,
        )

    assert outcome(True) == outcome(False)


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=50)
@given(
    arrays.arrays(np.float32, (5, 3), elements=finite),
    st.lists(st.one_of(st.floats(0, 2**30, width=32), st.integers(0, 2**24)), min_size=5, max_size=5),
    st.lists(st.sampled_from(["doc", "a b", "é", "", "docid", "x#y", "0"]), min_size=5, max_size=5),
    st.sampled_from(["data.txt", "data.txt.gz", "data.txt.zst"]),
)
def test_round_trip(tmp_path_factory, features, labels, item_ids, name):
    path = tmp_path_factory.mktemp("trip") / name
    dataset = from_arrays(features, labels, qid=["b", "a", "b", "a", "c"], item_ids=item_ids)
    write_letor(dataset, path)
    again = read_letor(path)
    assert again.features_by_query.tobytes() == dataset.features_by_query.tobytes()
    for field in ("labels_by_query", "query_offsets", "query_ids", "item_ids_by_query"):
        assert getattr(again, field).tolist() == getattr(dataset, field).tolist()


def test_written_text(tmp_path):
    path = tmp_path / "out.txt"
    write_letor(from_arrays([[0.1, 0], [2, 1e-7]], [2, 0.5], qid=[7, 7], item_ids=["GX01", "a page"]), path)
    assert path.read_text() == "2 qid:7 1:0.1 2:0.0 #docid = GX01\n0.5 qid:7 1:2.0 2:1e-07 # a page\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_text("old")
    monkeypatch.setattr("rankpolicy.data.formats.letor._shortest", lambda values: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_letor(from_arrays([[1.0]], group=[1]), path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


def test_written_files_have_the_usual_rights(tmp_path):
    plain, path = tmp_path / "plain", tmp_path / "out.txt"
    plain.touch()
    write_letor(from_arrays([[1.0]], group=[1]), path)
    assert stat.S_IMODE(os.stat(path).st_mode) == stat.S_IMODE(os.stat(plain).st_mode)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"qid": ["a b"]}, "query ids must be words without space or '#' to be written; got 'a b'"),
        ({"qid": ["a#"]}, "query ids must be words"),
        ({"qid": ["a"], "item_ids": ["x\ny"]}, "item ids must be on one line"),
        ({"qid": ["a"], "item_ids": [" x"]}, "without space around them"),
        ({"qid": ["a"], "item_ids": ["docid = y z"]}, "item ids must"),
    ],
)
def test_what_cannot_be_written(tmp_path, arguments, message):
    with pytest.raises(RankPolicyError, match=message):
        write_letor(from_arrays([[1.0]], **arguments), tmp_path / "out.txt")


def test_one_name_for_two_queries_and_a_missing_directory_cannot_be_written(tmp_path):
    dataset = from_arrays([[1.0], [2.0]], qid=["a", "b"])
    with pytest.raises(RankPolicyError, match="'a' names 2"):
        write_letor(dataset[[0, 0]], tmp_path / "out.txt")
    with pytest.raises(RankPolicyError, match="directory that exists"):
        write_letor(dataset, tmp_path / "nowhere" / "out.txt")


def test_one_wrong_feature_id_does_not_fill_the_memory(tmp_path):
    (tmp_path / "wide.txt").write_text("1 qid:1 1:1\n" * 3 + "1 qid:1 2000000000:1\n")
    with pytest.raises(
        RankPolicyError, match="4 lines of 57 bytes with feature ids up to 2000000000 would fill 30 GiB"
    ):
        read_letor(tmp_path / "wide.txt")


def test_a_directory_is_no_place_for_a_file(tmp_path):
    with pytest.raises(RankPolicyError, match="must be a file to write; it is a directory"):
        write_letor(from_arrays([[1.0]], group=[1]), tmp_path)
