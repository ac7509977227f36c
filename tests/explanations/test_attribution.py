"""Values of explanations, against all coalitions, for every ranker."""

from dataclasses import replace
from itertools import product
from math import factorial

import numpy as np
import polars
import pytest

import rankpolicy as rp
from rankpolicy.explanations.exact_values import tree_values, trees_of
from rankpolicy.rankers import RANKERS

NUM_FEATURES = 8
WEB = rp.make_web_search(40, items_per_query=(4, 7), num_features=NUM_FEATURES, random_state=1)
DATA = replace(WEB, groups_by_query=np.arange(WEB.num_items) % 2)
TRAIN, TEST = DATA[:30], DATA[30:]
QUICK = {
    "fair-pg-rank": {"epochs": 3, "fairness": "individual"},
    "pg-rank": {"epochs": 3, "num_networks": 2},
    "matching-cross": {"epochs": 3, "model": "mlp"},
    "lambdamart": {"num_trees": 20, "min_items_in_leaf": 5},
    "boosted-policy": {"num_trees": 20, "min_items_in_leaf": 5},
    "boosted-regression": {"num_trees": 20, "min_items_in_leaf": 5},
    "adarank": {"rounds": 10},
    "coordinate-ascent": {"restarts": 1, "max_passes": 1},
    "auto": {
        "methods": ("boosted-regression", "pg-rank"),
        "method_settings": {"boosted-regression": {"num_trees": 5}, "pg-rank": {"epochs": 2, "num_networks": 1}},
        "num_folds": 2,
    },
    "fair-exposure": {
        "strength": 0.1,
        "num_samples": 20,
        "num_folds": 2,
        "relevance_settings": {"boosted-regression": {"num_trees": 5}},
    },
    "fair-lp": {"strength": 0.1},
}


@pytest.fixture(scope="module")
def fitted():
    made = {}
    for name, ranker in RANKERS.items():
        quick = {"epochs": 3} if "epochs" in ranker.setting_names() else {}
        made[name] = ranker(**QUICK.get(name, quick)).fit(TRAIN)
    return made


def values_of(ranker, query, of):
    """Score, or expected rank as the exposure when a rank is worth its number."""
    if of == "score":
        return ranker.predict(query)
    return ranker.exposure(query, rank_weights=np.arange(1.0, query.num_items + 1))


def by_all_coalitions(ranker, query, item, over, of):
    """Shapley values from the definition: outside the coalition the two items have exchanged their features."""
    num_features = query.num_features
    worth = {}
    for taken in product((False, True), repeat=num_features):
        features = query.features.copy()
        features[item] = np.where(taken, query.features[item], query.features[over])
        features[over] = np.where(taken, query.features[over], query.features[item])
        worth[taken] = values_of(ranker, replace(query, features_by_query=features), of)[item]
    shapley = np.zeros(num_features)
    for taken, value in worth.items():
        size = sum(taken)
        for feature in range(num_features):
            if not taken[feature]:
                joined = (*taken[:feature], True, *taken[feature + 1 :])
                weight = factorial(size) * factorial(num_features - size - 1) / factorial(num_features)
                shapley[feature] += weight * (worth[joined] - value)
    return shapley


@pytest.mark.parametrize("of", ["score", "expected_rank"])
@pytest.mark.parametrize("name", RANKERS)
def test_values_add_up_to_the_difference(name, of, fitted):
    ranker, query = fitted[name], TEST[2:3]
    values, (first, *_, last) = values_of(ranker, query, of), ranker.rank(query)[0].tolist()
    explained = ranker.explain(query, item=first, over=last, of=of, num_samples=4)
    assert explained.values.sum() == pytest.approx(values[first] - values[last], abs=1e-6)
    assert (explained.value, explained.base) == pytest.approx((values[first], values[last]), abs=1e-6)
    against_background = ranker.explain(TEST[:4], item=first + int(TEST.offsets[2]), of=of, num_samples=4)
    assert against_background.value == pytest.approx(values[first], abs=1e-6)
    assert against_background.values.sum() == pytest.approx(
        against_background.value - against_background.base, abs=1e-6
    )


# fair-lp solves linear programs with several solutions, so that a change of the order of items may change its scores.
@pytest.mark.parametrize("of", ["score", "expected_rank"])
@pytest.mark.parametrize("name", ["lambdamart", "boosted-policy", "pg-rank", "bandit-rank", "rank-svm", "fair-pg-rank"])
def test_values_are_those_of_all_256_coalitions(name, of, fitted):
    query = TEST[4:5]
    first, *_, last = fitted[name].rank(query)[0].tolist()
    found = fitted[name].explain(query, item=first, over=last, of=of)
    expected = by_all_coalitions(fitted[name], query, first, last, of)
    np.testing.assert_allclose(found.values, expected, atol=1e-6)
    assert found.method.startswith("exact")
    assert (found.standard_errors == 0).all()


def test_formulas_of_linear_rankers_and_trees_are_used_where_they_hold(fitted):
    methods = {name: ranker.explain(TEST[:1], over=1, item=0).method for name, ranker in fitted.items()}
    assert {name for name, method in methods.items() if method == "exact (trees)"} == {
        "lambdamart",
        "boosted-policy",
        "boosted-regression",
    }
    linear = {"adarank", "coordinate-ascent", "rank-svm", "fair-pg-rank", "deltr"}
    assert {name for name, method in methods.items() if method == "exact (linear)"} == linear


@pytest.mark.parametrize("scaling", ["quantile", "log1p", "none", "query_minmax"])
def test_linear_values_are_exact_under_every_scaling(scaling):
    ranker = rp.ListNet(model="linear", scaling=scaling, epochs=2, num_networks=2).fit(TRAIN)
    found = ranker.explain(TEST[4:5], item=0, over=1)
    np.testing.assert_allclose(found.values, by_all_coalitions(ranker, TEST[4:5], 0, 1, "score"), atol=1e-6)


@pytest.mark.parametrize(
    "model", [rp.models.MLP(query_context="mean"), rp.models.ListTransformer(width=8, num_blocks=1)]
)
@pytest.mark.parametrize("of", ["score", "expected_rank"])
def test_values_of_networks_of_whole_queries_count_what_an_item_does_to_the_others(model, of):
    data = replace(DATA, features_by_query=DATA.features_by_query[:, :4])
    ranker = rp.ListNet(model=model, epochs=2, learning_rate=0.01).fit(data[:30], progress=False)
    query = data[34:35]
    found = ranker.explain(query, item=0, over=1, of=of, num_samples=200)
    expected = by_all_coalitions(ranker, query, 0, 1, of)
    assert (np.abs(found.values - expected) < 6 * found.standard_errors + 1e-5).all()


def test_sampled_values_are_near_those_of_all_coalitions(fitted):
    query = TEST[4:5]
    found = fitted["pg-rank"].explain(query, item=0, over=1, num_samples=5)
    assert found.method == "sampled"
    expected = by_all_coalitions(fitted["pg-rank"], query, 0, 1, "score")
    many = fitted["pg-rank"].explain(query, item=0, over=1, num_samples=15)
    for estimate in (found, many):
        assert (np.abs(estimate.values - expected) < 6 * estimate.standard_errors + 1e-6).all()
    assert many.standard_errors.mean() < found.standard_errors.mean()


def test_a_background_is_the_mean_over_its_items(fitted):
    ranker, query, background = fitted["lambdamart"], TEST[4:5], TEST[:1]
    found = ranker.explain(query, item=0, background=background)
    scores = ranker.predict(background)
    assert found.base == pytest.approx(scores.mean())
    trees = trees_of(ranker._booster, num_trees=ranker.best_iteration_)
    each = [tree_values(trees, query.features[0], background.features[[row]]) for row in range(background.num_items)]
    np.testing.assert_allclose(found.values, np.mean(each, axis=0), atol=1e-12)


@pytest.mark.parametrize("of", ["score", "expected_rank"])
def test_a_background_may_hold_the_item_itself(of, fitted):
    for query in TEST.query_ids:
        found = fitted["pg-rank"].explain(TEST, query=query, of=of, num_samples=2)
        assert found.values.sum() == pytest.approx(found.value - found.base, abs=1e-12)


def frame_with_gaps(num_queries=60, seed=0):
    """Numbers of which some are missing, a zero-inflated count, and a category that decides the label."""
    generator = np.random.default_rng(seed)
    rows = 6 * num_queries
    numbers = generator.normal(size=(rows, 2))
    numbers[generator.random((rows, 2)) < 0.2] = np.nan
    colour = generator.choice(["red", "green", "blue", None], size=rows)
    return polars.DataFrame(
        {
            "qid": np.repeat(np.arange(num_queries), 6),
            "label": (colour == "red") * 2 + (np.nan_to_num(numbers[:, 0]) > 0.5),
            "price": numbers[:, 0],
            "age": numbers[:, 1],
            "clicks": generator.poisson(0.7, rows).astype(float),
            "colour": polars.Series(colour.tolist()).cast(polars.Categorical),
        },
        nan_to_null=True,
    )


@pytest.mark.parametrize(
    "ranker",
    [
        rp.LambdaMART(num_trees=30, min_items_in_leaf=5),
        rp.RankSVM(),
        rp.PGRank(epochs=60, learning_rate=0.02, num_networks=1, model=rp.models.MLP(hidden=(8,))),
        rp.ListNet(model="linear", epochs=60, learning_rate=0.02),
    ],
    ids=lambda ranker: ranker.name,
)
def test_missing_values_and_categories(ranker):
    data = rp.from_frame(frame_with_gaps())
    ranker.fit(data[:50])
    test = data[50:]
    for number in range(4):
        query = test[number : number + 1]
        found = ranker.explain(query, item=0, over=1)
        np.testing.assert_allclose(found.values, by_all_coalitions(ranker, query, 0, 1, "score"), atol=1e-6)
    importance = ranker.feature_importance(test, num_repeats=2)
    assert importance.names == ("price", "age", "clicks", "colour")
    assert importance.to_frame()["feature"][0] == "colour"
    found = ranker.explain(test, item=0)
    assert set(found.item_features) & {"red", "green", "blue", "missing"}


def test_trees_decide_as_lightgbm_does():
    data = rp.from_frame(frame_with_gaps(200))
    ranker = rp.BoostedRegression(num_trees=40, min_items_in_leaf=5).fit(data[:150])
    rows = data[150:].features.copy()
    rows[::7] = 0.0
    rows[::11, 3] = 3.0  # no such category
    rows[5::13, 2] = np.nan  # never missing in training
    trees = trees_of(ranker._booster, num_trees=ranker.best_iteration_)
    scores = ranker._booster.predict(rows, num_iteration=ranker.best_iteration_)
    for row in range(1, 100):
        values = tree_values(trees, rows[row], rows[[0]])
        assert values.sum() == pytest.approx(scores[row] - scores[0], abs=1e-9)


def test_a_planted_feature_is_found():
    generator = np.random.default_rng(0)
    features = generator.normal(size=(600, 10)).astype(np.float32)
    labels = (features[:, 7] > 0.3) + (features[:, 7] > 1.0)
    data = rp.from_arrays(features, labels, group=[10] * 60, feature_names=[f"f{i}" for i in range(10)])
    for ranker in (rp.LambdaMART(num_trees=30, min_items_in_leaf=10), rp.PGRank(epochs=15, num_networks=1)):
        ranker.fit(data[:40])
        importance = ranker.feature_importance(data[40:])
        assert importance.to_frame()["feature"][0] == "f7"
        assert importance.lower[7] > importance.upper[[0, 1, 2, 3, 4, 5, 6, 8, 9]].max()
        order = ranker.rank(data[40:])[0].tolist()
        for of in ("score", "expected_rank"):
            found = ranker.explain(data[40:], item=order[0], over=order[-1], of=of)
            assert found.to_frame()["feature"][0] == "f7"


def test_the_protected_group_is_a_reason_where_items_are_ranked_by_it():
    ranker = rp.FairPGRank(strength=0.0, fairness=rp.fairness.GroupExposure(parity=1.0), epochs=5).fit(TRAIN)
    query = TEST[4:5]
    found = ranker.explain(query, item=0, over=1)
    assert found.names[-1] == "(protected group)"
    assert found.item_features[-1] != found.reference_features[-1]
    scores = ranker.predict(query)
    assert found.values.sum() == pytest.approx(scores[0] - scores[1], abs=1e-6)
    assert ranker.explain(query, item=0, over=2).names == ranker.explain(query, item=0).names  # the same group


def test_items_are_named_by_row_or_by_id(fitted):
    ranker = fitted["rank-svm"]
    mixed = np.random.default_rng(0).permutation(TEST.num_items)
    ids = [f"doc{row}" for row in range(TEST.num_items)]
    data = rp.from_arrays(
        TEST.features[mixed], TEST.labels[mixed], qid=TEST.query_of_item[mixed], item_ids=np.array(ids)[mixed]
    )
    rows = ranker.rank(data)[0]
    query = int(TEST.query_of_item[mixed][rows[0]])
    by_row = ranker.explain(data, item=int(rows[0]), over=rows[1])
    by_id = ranker.explain(data, query=query, item=ids[mixed[rows[0]]], over=ids[mixed[rows[1]]])
    assert (by_row.item, by_row.over, by_row.query) == (by_id.item, by_id.over, by_id.query)
    assert by_row.value == ranker.predict(data)[rows[0]]
    np.testing.assert_array_equal(by_row.values, by_id.values)
    assert ranker.explain(data, query=query).item == by_id.item  # the first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "name the query: the data has 10"),
        ({"query": "nobody"}, "there is no query with the id 'nobody'"),
        ({"query": "31", "item": "31-99"}, "there is no item of query 31 with the id '31-99'. Did you mean"),
        ({"item": 10_000}, "the row of an item must be from 0 to"),
        ({"item": -1}, "the row of an item must be from 0 to"),
        ({"item": 0, "over": TEST.num_items - 1}, "both items must belong to query"),
        ({"item": 0, "over": 0}, "item and over are the same item"),
        ({"item": True}, "an item is named by its id"),
        ({"item": 0.5}, "an item is named by its id"),
        ({"item": 0, "of": "rank"}, "of must be 'score' or 'expected_rank'; got 'rank'"),
        ({"item": 0, "num_samples": 1}, "num_samples must be a whole number, 2 or more"),
        ({"item": 0, "random_state": "x"}, "random_state must be a seed, a whole number from 0 to 2"),
        ({"item": 0, "over": 1, "background": TRAIN}, "not with both"),
        ({"item": 0, "background": "rows.csv"}, "background must be a RankingDataset; got str"),
    ],
)
def test_what_cannot_be_explained_is_said_in_words(fitted, arguments, message):
    with pytest.raises(rp.RankPolicyError, match=message.replace("(", r"\(")):
        fitted["rank-svm"].explain(TEST, **arguments)


def test_names_with_signs_of_formulas_are_drawn(tmp_path):
    names = ["price in $", "$\\frac$", "a\nb", "_^{", "x" * 90, "f", "g", "[bold]"]
    data = rp.from_arrays(TEST.features, TEST.labels, group=TEST.sizes, feature_names=names)
    ranker = rp.RankSVM().fit(data)
    for found in (ranker.explain(data, item=0, over=1), ranker.feature_importance(data, num_repeats=1)):
        found.plot(tmp_path / "figure.svg")
        assert "price in $" in (tmp_path / "figure.svg").read_text()


def test_a_single_item_has_nothing_above_it(fitted):
    alone = rp.from_arrays(TEST.features[:1], group=[1])
    found = fitted["pg-rank"].explain(alone, item=0, of="expected_rank", background=TRAIN, num_samples=2)
    assert (found.value, found.base) == (1, 1)
    np.testing.assert_allclose(found.values, 0, atol=1e-12)


def test_texts_and_arrays_are_refused_in_words(fitted):
    texts = rp.from_texts(["a b"] * 4, [["a", "b c"]] * 4, [[1, 0]] * 4)
    reader = rp.BanditRank(model="mcan", epochs=1, num_networks=1).fit(texts)
    with pytest.raises(rp.RankPolicyError, match="this BanditRank reads texts and has no features to explain"):
        reader.explain(texts, item=0)
    with pytest.raises(rp.RankPolicyError, match="this BanditRank reads texts and has no features to explain"):
        reader.feature_importance(texts)
    with pytest.raises(rp.RankPolicyError, match="data to explain must be a RankingDataset; got str"):
        fitted["rank-svm"].explain("test.txt", item=0)
    with pytest.raises(rp.RankPolicyError, match="not fitted yet"):
        rp.RankSVM().explain(TEST, item=0)
