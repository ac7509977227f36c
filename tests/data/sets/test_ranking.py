import numpy as np
import pytest

from rankpolicy.data import make_ranking
from rankpolicy.data.fingerprints import fingerprint
from rankpolicy.data.sets.ranking import additive_signal, interacting_signal
from rankpolicy.types import RankPolicyError


def correlations(values, labels):
    return np.abs(np.corrcoef(values.T, labels)[-1, :-1])


def test_sizes_features_and_grades_are_those_asked_for():
    data = make_ranking(
        300, items_per_query=(3, 9), num_features=7, num_informative=2, num_grades=4, relevant_share=0.4
    )
    assert (data.num_queries, data.num_features) == (300, 7)
    assert (data.sizes.min(), data.sizes.max()) == (3, 9)
    shares = [(data.labels >= grade).mean() for grade in (1, 2, 3, 4)]
    np.testing.assert_allclose(shares, [0.4, 0.2, 0.1, 0], atol=1e-3)
    assert set(make_ranking(20, items_per_query=6, num_grades=2).labels.tolist()) == {0, 1}
    assert make_ranking(20, items_per_query=6).sizes.tolist() == [6] * 20


def test_same_seed_same_data():
    assert fingerprint(make_ranking(20)) == fingerprint(make_ranking(20))
    assert fingerprint(make_ranking(20)) != fingerprint(make_ranking(20, random_state=1))


FEATURES = np.array([[0.2, -1.0, 3.0, 0.5], [-2.0, 0.5, 1.0, 2.0], [1.5, 2.0, -1.0, -3.0], [0.0, 1.0, -2.0, 0.1]])


def test_signals_by_hand():
    draws = np.random.default_rng(4)
    weights = draws.uniform(0.5, 1.5, 4) * draws.choice([-1.0, 1.0], 4)
    shaped = [[x0, np.tanh(2 * x1), x2, np.tanh(2 * x3)] for x0, x1, x2, x3 in FEATURES]
    expected = [sum(w * x for w, x in zip(weights, row, strict=True)) for row in shaped]
    np.testing.assert_allclose(additive_signal(FEATURES, np.random.default_rng(4)), expected)

    draws = np.random.default_rng(4)
    first, last = draws.uniform(-1, 1), draws.uniform(-1, 1)
    weights = draws.uniform(0.5, 1.5, 4) * draws.choice([-1.0, 1.0], 4)
    quarters = [1.5, 0.5, -0.5, -1.5]  # of the third feature: 3, 1, -1, -2
    expected = [
        weights @ [np.sign(x0 - first), x1 * x2, quarter, np.sign(x3 - last)]
        for (x0, x1, x2, x3), quarter in zip(FEATURES, quarters, strict=True)
    ]
    np.testing.assert_allclose(interacting_signal(FEATURES, np.random.default_rng(4)), expected)


def test_only_the_informative_features_decide_the_second_by_a_product():
    data = make_ranking(1500, items_per_query=20, num_informative=4, noise=0.3)
    hidden = data.features.copy()
    hidden[:, 2::3] = np.log(hidden[:, 2::3])
    alone = correlations(hidden, data.labels)
    assert alone[[0, 2, 3]].min() > 0.08
    assert correlations((hidden[:, 1] * hidden[:, 2])[:, None], data.labels)[0] > 0.08
    assert alone[4:].max() < 0.03


def test_noise_blurs_and_additive_effects_show_in_each_feature():
    settings = {"num_features": 6, "num_informative": 6, "effects": "additive"}
    clear, blurred = (make_ranking(800, noise=noise, **settings) for noise in (0.0, 3.0))
    clear, blurred = (correlations(data.features[:, :2], data.labels) for data in (clear, blurred))
    assert (clear > 1.5 * blurred).all()


def test_with_a_shift_the_difference_from_the_query_decides():
    data = make_ranking(800, items_per_query=20, effects="additive", num_features=3, num_informative=2, query_shift=3.0)
    query = data.query_of_item
    means = np.stack([np.bincount(query, column) / data.sizes for column in data.features[:, :2].T], axis=1)
    raw = correlations(data.features[:, :2], data.labels)
    assert (correlations(data.features[:, :2] - means[query], data.labels) > 1.5 * raw).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_informative": 31}, "num_informative must be at most num_features; got 31 of 30 features"),
        ({"num_informative": 0}, "num_informative must be"),
        ({"items_per_query": (9, 3)}, r"fewest <= most; got \(9, 3\)"),
        ({"items_per_query": 0}, "items_per_query must be"),
        ({"num_grades": 1}, "num_grades must be"),
        ({"relevant_share": 1.0}, "relevant_share must be above 0 and below 1; got 1"),
        ({"noise": -1.0}, "noise must be between 0 and 1e.06; got -1"),
        ({"query_shift": 20.0}, "query_shift must be between 0 and 10; got 20"),
        ({"effects": "linear"}, "Unknown kind of effects 'linear'. Known: additive, interacting"),
        ({"num_queries": 10**9, "num_features": 10**6}, "are more than 2000000000 numbers; ask for fewer"),
    ],
)
def test_what_cannot_be_drawn_is_refused(settings, message):
    with pytest.raises(RankPolicyError, match=message):
        make_ranking(**settings)
