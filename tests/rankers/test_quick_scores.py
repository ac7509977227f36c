"""A plain matrix is scored without being made a dataset, with the same scores and the same errors."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rankpolicy as rp


@pytest.fixture(scope="module")
def ranker():
    rng = np.random.default_rng(0)
    features, labels = rng.standard_normal((200, 7)), rng.integers(0, 3, 200)
    return rp.PGRank(epochs=2).fit(features, labels, group=np.full(20, 10), progress=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_scores_are_those_of_the_ordinary_way(ranker, dtype, order):
    features = np.asarray(np.random.default_rng(1).standard_normal((25, 7)), dtype=dtype, order=order)
    assert ranker._quick_scores(features) is not None
    np.testing.assert_allclose(ranker.predict(features), ranker.predict(features, group=[25]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.full((2, 7), np.inf), "finite|infinit"),
        (np.full((2, 7), 1e300), "finite|infinit|large"),
        (np.zeros((2, 6)), "7 features"),
        (np.zeros((0, 7)), "at least one"),
        (np.zeros(7), "matrix"),
    ],
)
def test_what_cannot_be_scored_is_refused_as_before(ranker, features, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        ranker.predict(features)


def test_a_ranker_that_is_not_fitted_says_so():
    with pytest.raises(rp.RankPolicyError, match="not fitted"):
        rp.PGRank().predict(np.zeros((2, 7)))


def test_predict_from_many_threads(ranker):
    queries = [np.random.default_rng(seed).standard_normal((25, 7)) for seed in range(16)]
    expected = [ranker.predict(query) for query in queries]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            for found, alone in zip(pool.map(ranker.predict, queries), expected, strict=True):
                np.testing.assert_array_equal(found, alone)


def test_large_datasets_are_scored_in_blocks(ranker):
    features = np.random.default_rng(2).standard_normal((20_000, 7)).astype(np.float32)
    scores = ranker.predict(features)
    np.testing.assert_allclose(scores[8180:8200], ranker.predict(features[8180:8200]), rtol=1e-5, atol=1e-6)
