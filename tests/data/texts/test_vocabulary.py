import gzip

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data.texts.vocabulary import NUM_UNKNOWN, Vocabulary, tokenize


def test_every_text_that_is_not_blank_has_a_word():
    for text in ("_", "\u200b", "?", "ß", "日本"):
        assert tokenize(text)


def test_words_are_numbered_by_frequency_and_rare_ones_are_unknown():
    vocabulary = Vocabulary.of(["b a b", "b a c"], min_count=2, also=["z", "a"])
    assert vocabulary.words == ("b", "a", "z")
    assert vocabulary.encode("Z B") == [3, 1]
    unknown = vocabulary.encode("c c d")
    assert unknown[0] == unknown[1] != unknown[2]
    assert all(4 <= number < 4 + NUM_UNKNOWN == len(vocabulary) for number in unknown)


def test_a_long_text_is_cut():
    assert Vocabulary(("a",)).encode("a a a", max_tokens=2) == [1, 1]


def test_repeated_words_are_refused():
    with pytest.raises(rp.RankPolicyError, match="'a' occurs twice"):
        Vocabulary(("a", "b", "a"))


@pytest.mark.parametrize("name", ["glove.txt", "glove.txt.gz"])
def test_word_vectors_become_rows_of_the_vocabulary(name, tmp_path):
    text = b"the 1 2\nof -1 0.5\nthe 9 9\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    vectors = rp.data.read_glove(tmp_path / name)
    assert vectors.words == ("the", "of")
    rows = vectors.rows_for(Vocabulary(("of", "xyz", "the")))
    assert rows.shape == (4 + NUM_UNKNOWN, 2)
    np.testing.assert_array_equal(rows[[0, 1, 3]], [[0, 0], [-1, 0.5], [1, 2]])
    assert (rows[2] != 0).all()
    np.testing.assert_array_equal(rows, vectors.rows_for(Vocabulary(("of", "xyz", "the"))))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2\nof 1\n", "line 2 must be a word and 2 numbers, as line 1 is; it has 1 numbers"),
        ("the 1 2\nof 1 2 3\n", "line 2 must be a word and 2 numbers, as line 1 is; it has 3 numbers"),
        ("the 1 2\nof 1 x\n", "line 2 must hold 2 finite numbers"),
        ("the 1 2\nof 1 nan\n", "line 2 must hold 2 finite numbers"),
        ("the\n", "line 1 must be a word and its numbers"),
    ],
)
def test_a_line_of_word_vectors_that_is_wrong_is_named(text, message, tmp_path):
    (tmp_path / "glove.txt").write_text(text)
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.data.read_glove(tmp_path / "glove.txt")


def test_word_vectors_of_another_language_are_refused(tmp_path):
    (tmp_path / "glove.txt").write_text("der 1 2\n")
    with pytest.raises(rp.RankPolicyError, match="they share none"):
        rp.data.read_glove(tmp_path / "glove.txt").rows_for(Vocabulary(("the",)))
