"""Words and n-grams as numbers, counted by users."""

from dataclasses import replace

import numpy as np
import pytest

from rankpolicy.data import HashingVocabulary, from_texts, tokenize
from rankpolicy.data.click_table.list_columns import Shown
from rankpolicy.data.texts import hashing_vocabulary
from rankpolicy.types import RankPolicyError


def seen_by(users, queries, items):
    return replace(from_texts(queries, items), shown_by_query=Shown(users=np.array(users)))


def test_a_word_is_kept_when_enough_users_saw_it_in_a_query_or_an_item():
    data = seen_by(["ann", "bob", "ann"], ["tea", "milk", "rum"], [["pot"], ["tea pot"], ["rum"]])
    vocabulary = HashingVocabulary.of(data, ngrams=(3,), min_users=2)
    assert vocabulary.words == ("pot", "tea")
    assert vocabulary.ngrams == ("#po", "#te", "ea#", "ot#", "pot", "tea")
    assert vocabulary.encode("tea rum") == [2, 4, 8, 5]
    assert vocabulary.encode("rum milk") == []
    assert len(vocabulary) == 9


def test_an_n_gram_may_be_seen_by_more_users_than_any_word_with_it():
    data = seen_by(["ann", "bob"], ["paris", "parma"], [["x"], ["y"]])
    vocabulary = HashingVocabulary.of(data, ngrams=(2, 3), min_users=2)
    assert vocabulary.words == ()
    assert vocabulary.ngrams == ("#p", "#pa", "ar", "pa", "par")
    assert vocabulary.encode("park") == [1, 4, 3, 2, 5]


def test_the_word_and_the_n_gram_of_the_same_letters_are_two_tokens():
    vocabulary = HashingVocabulary.of(from_texts(["par"], [["paris"]]))
    assert vocabulary.number_of["par"] != vocabulary.number_of_ngram["par"]


@pytest.mark.parametrize("cells", [1, 7, 4_000_000])
def test_counts_are_those_of_sets_of_users(cells, monkeypatch):
    monkeypatch.setattr(hashing_vocabulary, "_PAIRS_PER_BLOCK", cells)
    random = np.random.default_rng(0)
    words = np.array(["tea", "pot", "bread", "cup", "milk", "teapot", "x", "mug"])

    def text():
        return " ".join(random.choice(words, random.integers(1, 4)))

    users = random.integers(0, 6, 30).astype(str)
    queries, items = [text() for _ in users], [[text() for _ in range(2)] for _ in users]
    seen = {}
    for user, query, shown in zip(users, queries, items, strict=True):
        for word in tokenize(" ".join([query, *shown])):
            seen.setdefault((word,), set()).add(user)
            marked = f"#{word}#"
            for start in range(len(marked) - 2 if len(marked) > 3 else 0):
                seen.setdefault(marked[start : start + 3], set()).add(user)
    for min_users in (2, 4, 6):
        vocabulary = HashingVocabulary.of(seen_by(users, queries, items), min_users=min_users)
        kept = {token for token, who in seen.items() if len(who) >= min_users}
        assert {(word,) for word in vocabulary.words} | set(vocabulary.ngrams) == kept


def test_more_tokens_than_buckets_share_numbers_by_a_hash_that_is_the_same_everywhere():
    data = from_texts(["paris tea milk"], [["rum"]])
    vocabulary = HashingVocabulary.of(data, num_buckets=5)
    assert len(vocabulary) == 6
    # crc32("tea") = 2391201714 and crc32(" tea") = 4038164098, both modulo 5.
    assert vocabulary.number_of["tea"] == 1 + 2391201714 % 5
    assert vocabulary.number_of_ngram["tea"] == 1 + 4038164098 % 5
    assert set(vocabulary.encode("paris tea milk rum")) <= set(range(1, 6))
    assert vocabulary.encode("unseen?") == []


def test_no_n_grams_and_only_the_first_words():
    vocabulary = HashingVocabulary.of(from_texts(["tea pot"], [["cup"]]), ngrams=())
    assert vocabulary.encode("Pot tea cup") == [2, 3, 1]
    assert vocabulary.encode("pot tea cup", max_tokens=2) == [2, 3]
    assert vocabulary.encode_all(["cup", "", "tea"]) == [[1], [], [3]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_users": 2}, "min_users=2 needs the user of each query; the training data have none"),
        ({"min_users": 0}, "min_users must be at least 1; got 0"),
        ({"num_buckets": 0}, "num_buckets must be at least 1; got 0"),
        ({"ngrams": (1,)}, r"ngrams must be lengths of at least 2; got \(1,\)"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(RankPolicyError, match=message):
        HashingVocabulary.of(from_texts(["tea"], [["pot"]]), **settings)
