"""One bandit per query in a sparse table decides as so many bandits would."""

import json

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.bandits import BANDITS, QueryBandit
from rankpolicy.bandits.per_query.keys import KnownTexts, keys_of
from rankpolicy.types import RankPolicyError

COUNTING = ["dcm-kl-ucb", "dcm-ucb1", "dcm-ts", "cascade-kl-ucb", "cascade-ucb1", "cascade-ts", "last-click"]


@pytest.mark.parametrize("name", COUNTING)
def test_each_query_has_a_bandit_of_its_own(name):
    many = QueryBandit(bandit=name, cutoff=3)
    single = {query: BANDITS[name](num_items=5, cutoff=3) for query in ("a", "b", "c")}
    generator = np.random.default_rng(0)
    for step in range(60):
        query = "abc"[generator.integers(3)]
        many.generator = np.random.default_rng(step)
        single[query].generator = np.random.default_rng(step)
        ranking = many.rank(query, np.arange(5))
        np.testing.assert_array_equal(ranking, single[query].rank())
        clicks = (generator.random(3) < 0.4).astype(int)
        many.learn(query, ranking, clicks)
        single[query].learn(ranking, clicks)
    for query, bandit in single.items():
        np.testing.assert_array_equal(many.counts_of(query, np.arange(5)), bandit.memory.statistics[0])


def test_a_hundred_thousand_queries_take_a_tenth_of_a_gigabyte_at_most():
    bandit, num_queries = QueryBandit(bandit="dcm-ts", cutoff=10), 100_000
    clicks = np.random.default_rng(0).random((num_queries, 10)) < 0.2
    clicks[:, -1] = True
    bandit.learn_log(np.arange(num_queries), np.tile(np.arange(10), (num_queries, 1)), clicks)
    assert bandit.num_bytes < 0.1e9
    for query in (0, 4095, 4096, 77_777, 99_999):
        np.testing.assert_array_equal(bandit.counts_of(query, np.arange(10)), np.stack([clicks[query], np.ones(10)], 1))
    assert bandit.counts_of(num_queries, np.arange(10)).sum() == 0


@pytest.mark.parametrize("pack", ["json", "file"])
def test_a_saved_bandit_decides_as_the_original_would(pack, tmp_path):
    bandit = QueryBandit(bandit="dcm-kl-ucb", cutoff=2, random_state=3, bandit_settings={"log_log_weight": 1.0})
    generator = np.random.default_rng(0)
    items = np.array(["x", "y", "z"])
    for number in range(1200):
        bandit.learn(f"query {number % 500}", items[generator.permutation(3)[:2]], generator.integers(0, 2, 2))
    if pack == "file":
        bandit.save(tmp_path / "queries.rank")
        copy = rp.load(tmp_path / "queries.rank")
    else:
        copy = QueryBandit.from_dict(json.loads(json.dumps(bandit.to_dict())))
    for number in range(60):
        query = f"query {number}"
        np.testing.assert_array_equal(bandit.counts_of(query, items), copy.counts_of(query, items))
        np.testing.assert_array_equal(bandit.rank(query, items), copy.rank(query, items))
        bandit.learn(query, items[:2], [1, 0])
        copy.learn(query, items[:2], [1, 0])


def test_logs_in_any_order_and_short_lists():
    late, batch = QueryBandit(bandit="dcm-ts", cutoff=3), QueryBandit(bandit="dcm-ts", cutoff=3)
    queries = ["a", "b", "a", "c"]
    rankings = np.array([["x", "y", "z"], ["x", "", ""], ["z", "x", ""], ["", "", ""]])
    clicks = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]])
    batch.learn_log(queries, rankings, clicks)
    for row in (2, 3, 1, 0):
        shown = rankings[row] != ""
        late.learn(queries[row], rankings[row][shown], clicks[row][shown])
    for bandit in (late, batch):
        assert bandit.counts_of("a", ["x", "y", "z"]).tolist() == [[0, 2], [1, 1], [0, 1]]
        assert bandit.counts_of("b", ["x", "y", "z"]).tolist() == [[1, 1], [0, 0], [0, 0]]
        assert bandit.rank("c", []).tolist() == []
        assert bandit.num_keys == 2 + 3 + 1  # queries a and b, their items


def test_texts_in_a_column_of_objects_are_texts():
    bandit = QueryBandit(bandit="dcm-ts", cutoff=2)
    queries, items = np.array(["a"], object), np.array([["x", "y"]], object)
    bandit.learn_log(queries, items, [[0, 1]])
    assert bandit.counts_of("a", ["x", "y"]).tolist() == bandit.counts_of("a", items[0]).tolist() == [[0, 1], [1, 1]]
    assert sorted(bandit.rank("a", items[0]).tolist()) == ["x", "y"]


def test_texts_are_learned_alike_in_every_form():
    generator = np.random.default_rng(1)
    queries = [f"q{number}" for number in generator.integers(0, 9, 200)]
    lists = [generator.permutation([f"i{number}" for number in range(8)])[:5] for _ in queries]
    clicks = generator.integers(0, 2, (200, 5))
    given = {
        "lists": lambda query, names, marks: (query, names.tolist(), marks.tolist()),
        "arrays": lambda query, names, marks: (query, names, marks.astype(bool)),
        "objects": lambda query, names, marks: (query, names.astype(object), marks.astype(float)),
    }
    made = {}
    for form, shaped in given.items():
        made[form] = QueryBandit(bandit="dcm-ts", cutoff=5)
        for query, names, marks in zip(queries, lists, clicks, strict=True):
            made[form].learn(*shaped(query, names, marks))
    made["log"] = QueryBandit(bandit="dcm-ts", cutoff=5)
    made["log"].learn_log(queries, np.array(lists), clicks)
    made["texts"] = QueryBandit(bandit="dcm-ts", cutoff=5)
    marks = [bytes(row) for row in clicks.astype(np.uint8)]
    made["texts"]._learn_texts(queries, [names.tolist() for names in lists], marks)
    expected = made["lists"].to_dict()["arrays"]
    assert sum(clicked for clicked, _ in expected["counts"]) > 200
    for bandit in made.values():
        found = bandit.to_dict()["arrays"]
        assert sorted(zip(found["keys"], found["counts"], strict=True)) == sorted(
            zip(expected["keys"], expected["counts"], strict=True)
        )
        assert bandit.num_keys == len(expected["keys"])


@pytest.mark.parametrize("texts", [True, False])
def test_many_lists_are_ranked_as_one_by_one(texts):
    one, many = QueryBandit(bandit="dcm-ts", cutoff=4), QueryBandit(bandit="dcm-ts", cutoff=4)
    items = np.array([[3, 5, 7, 9, 11], [5, 3, -1, -1, -1], [-1, -1, -1, -1, -1], [9, 1, 2, -1, -1]])
    queries = [4, 1, 2, 4]
    if texts:
        items, queries = np.where(items < 0, "", items.astype(str)), [str(query) for query in queries]
    for bandit in (one, many):
        bandit.learn(queries[0], items[0][:4], [0, 1, 1, 0])
    found = many.rank_many(queries, items, cutoff=3)
    for query, names, row in zip(queries, items, found, strict=True):
        shown = names != ("" if texts else -1)
        expected = one.rank(query, names[shown], cutoff=3).tolist()
        assert row.tolist() == expected + ["" if texts else -1] * (3 - len(expected))
    assert one.generator.bit_generator.state == many.generator.bit_generator.state
    with pytest.raises(RankPolicyError, match="past the end of a list; got an item after one"):
        many.rank_many(queries[:1], items[1:2][:, ::-1])
    with pytest.raises(RankPolicyError, match="queries one per list"):
        many.rank_many(queries, items[:2])
    with pytest.raises(RankPolicyError, match="each item once"):
        many.rank_many(queries[:1], items[:1][:, [0, 0]])


def test_texts_that_were_forgotten_have_the_same_keys():
    known = KnownTexts(most=3)
    names = ["a", "b", "c", "d", "a", "é"]
    assert np.frombuffer(known.keys_of(names), np.uint64).tolist() == keys_of(names).tolist()
    assert len(known) <= 3
    assert known.keys_of(["a", ""]) is None
    assert known.keys_of(["a", 3]) is None
    assert known.keys_of([["a"]]) is None
    bandit = QueryBandit(bandit="dcm-ts", cutoff=2)
    bandit.learn("q\0", ["a\0", "b"], [1, 0])  # numpy drops the last character
    assert bandit.counts_of("q", ["a", "b"]).tolist() == [[1, 1], [0, 0]]


def test_bad_input_is_refused():
    bandit = QueryBandit(bandit="dcm-ts", cutoff=2)
    for call, text in [
        (lambda: QueryBandit(bandit="dbn-ts", cutoff=2), "got dbn-ts. These do: dcm-kl-ucb"),
        (lambda: QueryBandit(bandit="ranked-kl-ucb", cutoff=2), "counts clicks"),
        (lambda: QueryBandit(bandit="dcm-ts", cutoff=2, bandit_settings={"window": 5}), "cannot forget"),
        (lambda: QueryBandit(bandit="dcm-ts", cutoff=0), "cutoff"),
        (lambda: bandit.learn("a", ["x", "x"], [0, 1]), "each item once"),
        (lambda: bandit.learn("a", ["x", "y", "z"], [0, 1, 0]), "at most 2 items"),
        (lambda: bandit.learn("a", ["x"], [0, 1]), "as many clicks"),
        (lambda: bandit.learn("a", ["x", "y"], [0, 3]), "0 or 1; got 3"),
        (lambda: bandit.learn_log(["a"], [[1], [2]], [[0], [1]]), "one per list"),
        (lambda: bandit.rank("a", ["x", "x"]), "each item once"),
        (lambda: bandit.rank("a", [0.5]), "texts or whole numbers"),
        (lambda: QueryBandit(bandit="dcm-ts", cutoff="2"), "cutoff must be a whole number"),
        (lambda: QueryBandit(bandit="dcm-ts", cutoff=2, bandit_settings={"windw": 5}), "Did you mean 'window'"),
        (lambda: bandit.learn("a", [3, -5], [1, 0]), "0 or more, -1 past the end of a list; got -5"),
        (lambda: bandit.learn("a", np.array(["x", None]), [1, 0]), "texts or whole numbers; got object"),
        (lambda: bandit.learn("a", np.array([b"x", b"y"]), [1, 0]), "texts or whole numbers"),
        (lambda: bandit.rank("a", [["x", "y"]]), r"one list of names; got an array of shape \(1, 2\)"),
        (lambda: bandit.rank("a", "xyz"), "one list of names"),
        (lambda: bandit.rank("a", ["x", ""]), "must have names"),
        (lambda: bandit.counts_of("a", [0, -1]), "must have names"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            call()
    assert bandit.num_keys == 0


def test_documents_of_strangers_are_checked():
    bandit = QueryBandit(bandit="dcm-ts", cutoff=2)
    bandit.learn("a", ["x", "y"], [0, 1])
    good = bandit.to_dict()
    keys, counts = good["arrays"]["keys"], good["arrays"]["counts"]
    for arrays, text in [
        ({"keys": keys[:2]}, "2 keys and 3 counts"),
        ({"keys": [0, *keys[1:]]}, "must not be 0"),
        ({"keys": [keys[1], *keys[1:]]}, "must not be 0, and each must come once"),
        ({"keys": [-1, *keys[1:]]}, "uint64 numbers"),
        ({"counts": [row[:1] for row in counts]}, "counts must have shape .any number, 2"),
        ({"counts": [[2**40, 0]] * 3}, "uint32 numbers; got larger"),
        ({"colour": [1]}, "no array colour"),
    ]:
        with pytest.raises(RankPolicyError, match=text):
            QueryBandit.from_dict(good | {"arrays": good["arrays"] | arrays})
    with pytest.raises(RankPolicyError, match="Unknown setting of dcm-ts"):
        QueryBandit.from_dict(good | {"settings": good["settings"] | {"bandit_settings": {"colour": 1}}})
    with pytest.raises(RankPolicyError, match="bandit_settings must be a mapping"):
        QueryBandit(bandit="dcm-ts", cutoff=2, bandit_settings=3)
    with pytest.raises(RankPolicyError, match="Give it in bandit_settings"):
        QueryBandit(bandit="dcm-kl-ucb", cutoff=2, log_log_weight=1.0)
