from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from rankpolicy.data import QueryKFold, from_arrays, k_fold, make_web_search, split_by_time, split_queries
from rankpolicy.data.click_table.list_columns import Shown
from rankpolicy.types import RankPolicyError


def dataset_of(num_queries):
    return from_arrays(np.arange(2 * num_queries).reshape(-1, 1), group=[2] * num_queries)


@given(st.integers(3, 40), st.sampled_from([(0.6, 0.2, 0.2), (0.5, 0.5), (0.98, 0.01, 0.01), (0.01, 0.01, 0.98)]))
def test_every_query_is_in_exactly_one_part(num_queries, fractions):
    parts = split_queries(dataset_of(num_queries), fractions)
    assert len(parts) == len(fractions)
    assert sorted(int(query) for part in parts for query in part.query_ids) == list(range(num_queries))


def test_splits_depend_on_the_seed_alone():
    dataset = dataset_of(50)
    first, again, other = (split_queries(dataset, random_state=seed)[0].query_ids.tolist() for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("fractions", "message"),
    [
        ((0.5, 0.6), r"add up to 1; got \(0\.5, 0\.6\), sum 1\.1"),
        ((1.5, -0.5), "positive"),
        ((0.25,) * 4, "4 parts needs a query"),
    ],
)
def test_split_errors(fractions, message):
    with pytest.raises(RankPolicyError, match=message):
        split_queries(dataset_of(3), fractions)


def test_k_fold_tests_every_query_once():
    tested = []
    for train, test in k_fold(dataset_of(11), 5):
        assert train.num_queries + test.num_queries == 11
        assert not set(train.query_ids) & set(test.query_ids)
        tested += test.query_ids.tolist()
    assert sorted(map(int, tested)) == list(range(11))


def test_too_many_folds_is_an_error_at_once():
    with pytest.raises(RankPolicyError, match="at most the number of queries, 3; got 5"):
        k_fold(dataset_of(3), 5)


def test_query_k_fold_in_scikit_learn():
    from sklearn.base import clone
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import cross_val_score

    dataset = make_web_search(20)
    groups = dataset.query_ids[dataset.query_of_item]
    splitter = QueryKFold(4, shuffle=True, random_state=0)
    scores = cross_val_score(Ridge(), dataset.features, dataset.labels, groups=groups, cv=splitter)
    assert scores.shape == (splitter.get_n_splits(),)
    for train, test in splitter.split(dataset.features, dataset.labels, groups):
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == dataset.num_items
    assert repr(clone(splitter, safe=False)) == repr(splitter)
    with pytest.raises(RankPolicyError, match=r"qid or groups must be the query id of each row; got none"):
        next(splitter.split(dataset.features))


def at_times(times):
    return replace(dataset_of(len(times)), shown_by_query=Shown(times=np.array(times, float)))


def test_a_split_by_time_puts_the_oldest_first():
    random = np.random.default_rng(0)
    parts = split_by_time(at_times(random.permutation(100)))
    assert [part.num_queries for part in parts] == [80, 10, 10]
    assert np.concatenate([part.shown.times for part in parts]).tolist() == list(range(100))


@given(st.lists(st.integers(0, 8), min_size=3, max_size=40), st.sampled_from([(0.8, 0.1, 0.1), (0.2, 0.5, 0.3)]))
def test_queries_of_one_time_stay_together(times, fractions):
    assume(len(set(times)) >= len(fractions))
    parts = split_by_time(at_times(times), fractions)
    assert sorted(int(query) for part in parts for query in part.query_ids) == list(range(len(times)))
    for earlier, later in pairwise(parts):
        assert earlier.shown.times.max() < later.shown.times.min()


def test_a_cut_moves_to_the_nearest_place_between_times():
    # Wanted cuts at 8 and 9 of 10; times change at 2 and 7 only.
    parts = split_by_time(at_times([1, 1, 2, 2, 2, 2, 2, 3, 3, 3]))
    assert [part.num_queries for part in parts] == [2, 5, 3]


def test_fewer_times_than_parts_are_cut_apart_with_a_warning():
    with pytest.warns(UserWarning, match="2 different times, fewer than the 3 parts"):
        parts = split_by_time(at_times([1, 1, 1, 1, 1, 1, 1, 1, 1, 0]))
    assert [part.query_ids.tolist() for part in parts] == [["9", "0", "1", "2", "3", "4", "5", "6"], ["7"], ["8"]]


def test_a_split_by_time_needs_times():
    with pytest.raises(RankPolicyError, match="needs the time of each query; the dataset has none"):
        split_by_time(dataset_of(5))
