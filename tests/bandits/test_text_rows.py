"""Many lists of texts at once do what one list after the other does, in whatever form they come."""

import random

import numpy as np
import pytest

from rankpolicy.bandits import QueryBandit
from rankpolicy.bandits.per_query.keys import text_array
from rankpolicy.types import RankPolicyError

CATALOGUES = {
    "one length": [f"item-{number:03d}" for number in range(40)],
    "any length": [f"item {number}" for number in range(40)],
    "any script": [f"{chr(0x1F600 + number)}é{number}" for number in range(40)],
    "a letter or two": ["a", "bc"] * 20,
    "zeros inside": ["ab\0cd", "e\0fgh", "abcdefg", "abc"],
    "half a pair": [f"\ud800{number:02d}" for number in range(40)],
}


def lists_of(catalogue, number=30, length=9):
    rng = random.Random(0)
    queries = [f"q{rng.randrange(5)}" for _ in range(number)]
    lists = [rng.sample(CATALOGUES[catalogue], length) for _ in range(number)]
    clicks = [[rng.randrange(2) for _ in range(length)] for _ in range(number)]
    return queries, lists, clicks


def bandit_of(cutoff=9):
    return QueryBandit(bandit="dcm-ts", cutoff=cutoff, random_state=3)


FORMS = {
    "lists": lambda values: values,
    "array": np.array,
    "objects": lambda values: np.array(values, object),
    "tuples": lambda values: tuple(map(tuple, values)) if isinstance(values[0], list) else tuple(values),
}


@pytest.mark.parametrize("catalogue", list(CATALOGUES)[:3])
@pytest.mark.parametrize("form", FORMS)
def test_many_lists_are_as_one_after_the_other(catalogue, form):
    queries, lists, clicks = lists_of(catalogue)
    one, many = bandit_of(), bandit_of()
    for query, names, marks in zip(queries, lists, clicks, strict=True):
        one.learn(query, names, marks)
    made = FORMS[form]
    many.learn_log(made(queries), made(lists), clicks if form == "objects" else made(clicks))
    for query in set(queries):
        assert np.array_equal(one.counts_of(query, CATALOGUES[catalogue]), many.counts_of(query, CATALOGUES[catalogue]))
    found = many.rank_many(made(queries), made(lists), cutoff=4)
    assert found.dtype.kind == "U"
    assert found.tolist() == [
        one.rank(query, names, cutoff=4).tolist() for query, names in zip(queries, lists, strict=True)
    ]


def test_short_lists_and_full_ones_learn_alike():
    queries, lists, clicks = lists_of("any length")
    full, padded = bandit_of(10), bandit_of(10)
    full.learn_log(queries, lists, clicks)
    padded.learn_log(queries, [[*names, ""] for names in lists], [[*marks, 0] for marks in clicks])
    assert full.num_keys == padded.num_keys
    assert full._table.entries().counts.sum() == padded._table.entries().counts.sum()


@pytest.mark.parametrize(
    ("rankings", "clicks", "said"),
    [
        ([["a", "a"]], [[0, 1]], "each item once"),
        ([["a", "b"]], [[0, 2]], "0 or 1"),
        ([["a", "b"]], [[0, -1]], "0 or 1"),
        ([["a", "b"]], [[0.5, 1]], "0 or 1"),
        ([["a", "b"]], [[0, 1, 1]], "as many clicks"),
        ([["a", "b"]], [[0, 1], [0, 1]], "as many clicks"),
        ([["a", "b", "c"]], [[0, 1, 0]], "at most 2 items"),
        ([["a", ""], ["", "b"]], [[0, 1], [0, 1]], "past the end"),
        ([["a", "b"], ["c"]], [[0, 1], [0]], "rectangular|shape|same length|ragged|regular"),
        ([["a", None]], [[0, 1]], "texts or whole numbers"),
        (["ab", "cd"], [[0, 1], [0, 1]], "list, position"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_learned(rankings, clicks, said):
    bandit = QueryBandit(bandit="dcm-ts", cutoff=2)
    with pytest.raises(RankPolicyError, match=said):
        bandit.learn_log(["q"] * len(rankings), rankings, clicks)
    assert bandit.num_keys == 0


def test_queries_must_be_one_per_list():
    bandit = QueryBandit(bandit="dcm-ts", cutoff=2)
    with pytest.raises(RankPolicyError, match="one per list"):
        bandit.rank_many(["q"], [["a", "b"], ["a", "c"]])
    with pytest.raises(RankPolicyError, match="one per list"):
        bandit.learn_log(["q"], [["a", "b"], ["a", "c"]], [[0, 1], [0, 1]])


def test_the_result_can_be_written_to():
    found = bandit_of().rank_many(["q", "r"], [["ab", "cd"], ["ef", "gh"]])
    found[0, 0] = "zz"
    assert found.flags.owndata


@pytest.mark.parametrize("catalogue", CATALOGUES)
def test_texts_become_the_array_that_numpy_makes(catalogue):
    expected, found = np.array(CATALOGUES[catalogue], np.str_), text_array(CATALOGUES[catalogue])
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
