"""Rankers within scikit-learn: checks of estimators, pipelines, cross-validation and searches with routed query ids."""

import subprocess
import sys

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers import RANKERS

sklearn = pytest.importorskip("sklearn", minversion="1.6")
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils import get_tags  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

DATA = rp.make_web_search(30, random_state=1)
X, Y, QID = DATA.features, DATA.labels, DATA.query_of_item

QUICK = {
    "auto": {
        "methods": ("boosted-regression", "pg-rank"),
        # A network that has learned little has scores that differ little, and dividing by that spread magnifies float32's rounding.
        "method_settings": {
            "boosted-regression": {"num_trees": 3},
            "pg-rank": {"epochs": 9, "num_networks": 1, "learning_rate": 0.1},
        },
    },
    "pg-rank": {"epochs": 2, "num_networks": 1},
    "fair-pg-rank": {"epochs": 2, "fairness": "individual"},
    "bandit-rank": {"epochs": 2, "num_networks": 1},
    "listnet": {"epochs": 2},
    "regression": {"epochs": 2},
    "lambdamart": {"num_trees": 3},
    "boosted-policy": {"num_trees": 3, "min_items_in_leaf": 1},
    "boosted-regression": {"num_trees": 3},
    "rank-svm": {},
    "adarank": {"rounds": 3},
    "coordinate-ascent": {"restarts": 1, "max_passes": 1},
}
NOT_CHECKED = {
    "equity-of-attention": "is a sequence of rankings, which has no scores to predict",
    "fa-ir": "ranks by protected groups, which check_estimator does not give",
    "fair-lp": "ranks by protected groups, which check_estimator does not give",
    "fair-exposure": "learns from protected groups, which check_estimator does not give",
    "deltr": "learns from protected groups, which check_estimator does not give",
    "matching-cross": "reads texts",
}
# The checks that cannot apply, and why.
CANNOT_APPLY = {
    "check_do_not_raise_errors_in_init_or_set_params": "rankers refuse wrong settings when they are made, not only in fit",
    "check_sample_weights_not_overwritten": "weighs single rows of one list; lists are learned from as a whole, so queries have weights",
    "check_sample_weight_equivalence_on_dense_data": "repeats single rows; a list with an item twice is another list",
    "check_sample_weight_equivalence_on_sparse_data": "repeats single rows; a list with an item twice is another list",
}


def one_query(ranker_class):
    """The ranker with all rows of a matrix as one query: check_estimator calls fit(X, y) and knows no queries."""

    def num_rows(X):
        return X.shape[0] if hasattr(X, "shape") else len(np.asarray(X))

    class OneQuery(ranker_class):
        def fit(self, X, y=None, sample_weight=None):
            return super().fit(X, y, group=[num_rows(X)], sample_weight=sample_weight, verbose=False)

        def score(self, X, y):
            return super().score(X, y, group=[num_rows(X)])

    # Where pickle looks for it.
    OneQuery.__qualname__ = OneQuery.__name__ = f"OneQuery{ranker_class.__name__}"
    OneQuery.__module__ = __name__
    setattr(sys.modules.setdefault(__name__, sys.modules[one_query.__module__]), OneQuery.__name__, OneQuery)
    return OneQuery


def test_every_ranker_is_checked_or_has_a_reason():
    assert set(QUICK) | set(NOT_CHECKED) == set(RANKERS)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.filterwarnings("ignore")
def test_check_estimator(name):
    results = check_estimator(
        one_query(RANKERS[name])(**QUICK[name]), expected_failed_checks=CANNOT_APPLY, on_fail=None, on_skip=None
    )
    failed = {each["check_name"]: str(each["exception"]) for each in results if each["status"] == "failed"}
    assert not failed
    # The list of exceptions stays as short as it can be.
    assert {each["check_name"] for each in results if each["status"] == "xfail"} == set(CANNOT_APPLY)
    assert sum(each["status"] == "passed" for each in results) >= 40


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_tags_and_fitted_state():
    ranker = rp.ListNet(epochs=1)
    tags = get_tags(ranker)
    assert tags.target_tags.required
    assert tags.target_tags.positive_only
    assert tags.estimator_type is None
    with pytest.raises(NotFittedError, match="not fitted"):
        check_is_fitted(ranker)
    with pytest.raises(NotFittedError, match="call fit"):
        ranker.predict(X)
    with pytest.raises(rp.RankPolicyError, match="call fit"):
        ranker.score(DATA)
    assert not hasattr(ranker, "n_features_in_")
    check_is_fitted(ranker.fit(DATA))
    assert ranker.n_features_in_ == X.shape[1]
    assert not hasattr(ranker, "feature_names_in_")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"f{column}" for column in range(X.shape[1])])
    ranker.fit(frame, Y, qid=QID)
    assert ranker.feature_names_in_.tolist() == list(frame.columns)


@pytest.mark.parametrize("name", ["listnet", "lambdamart", "rank-svm"])
def test_score_is_ndcg_at_10_in_any_form(name):
    ranker = RANKERS[name](**QUICK[name]).fit(DATA)
    expected = rp.evaluate(ranker, DATA, ["ndcg@10"]).means["ndcg@10"]
    assert ranker.score(DATA) == pytest.approx(expected)
    assert ranker.score(X, Y, qid=QID) == pytest.approx(expected)
    assert ranker.score(X, Y, group=DATA.sizes) == pytest.approx(expected)
    if name != "lambdamart":  # few trees leave ties
        shuffled = np.random.default_rng(0).permutation(len(X))
        assert ranker.score(X[shuffled], Y[shuffled], qid=QID[shuffled]) == pytest.approx(expected, abs=1e-6)
    weights = np.arange(DATA.num_queries, dtype=float)
    values = rp.evaluate(ranker, DATA, ["ndcg@10"])["ndcg@10"]
    assert ranker.score(DATA, sample_weight=weights) == pytest.approx(np.average(values, weights=weights))
    with pytest.raises(rp.RankPolicyError, match="fit needs labels"):
        ranker.score(X, qid=QID)


def test_grid_search_routes_qid(routing):
    search = GridSearchCV(
        rp.PGRank(epochs=2, num_networks=1),
        {"learning_rate": [1e-3, 1e-2], "model__hidden": [(4,), (8, 8)]},
        cv=rp.QueryKFold(5),
        error_score="raise",
    ).fit(X, Y, qid=QID)
    assert len(search.cv_results_["params"]) == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.model.hidden == search.best_params_["model__hidden"]
    assert search.score(X, Y, qid=QID) == pytest.approx(search.best_estimator_.score(DATA))
    # By hand: the folds are those of QueryKFold, and the score is NDCG@10 of the test queries.
    best = rp.PGRank(epochs=2, num_networks=1).set_params(**search.best_params_)
    by_hand = []
    for train, test in rp.QueryKFold(5).split(X, Y, qid=QID):
        ranker = clone(best).fit(X[train], Y[train], qid=QID[train])
        by_hand.append(ranker.score(X[test], Y[test], qid=QID[test]))
    assert search.best_score_ == pytest.approx(np.mean(by_hand))


def test_randomized_search_of_trees_routes_qid_and_weights(routing):
    search = RandomizedSearchCV(
        rp.LambdaMART(num_trees=3).set_fit_request(sample_weight=True).set_score_request(sample_weight=False),
        {"num_leaves": [3, 7, 15], "learning_rate": [0.1, 0.3]},
        n_iter=3,
        cv=rp.QueryKFold(3, shuffle=True, random_state=0),
        random_state=0,
        error_score="raise",
    ).fit(X, Y, qid=QID, sample_weight=1.0 + QID)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_pipeline_with_a_scaler(routing):
    pipeline = make_pipeline(StandardScaler(), rp.ListNet(epochs=2, scaling="none"))
    pipeline.fit(X, Y, qid=QID)
    scaled = StandardScaler().fit_transform(X)
    alone = rp.ListNet(epochs=2, scaling="none").fit(scaled, Y, qid=QID)
    np.testing.assert_allclose(pipeline.predict(X), alone.predict(scaled), rtol=1e-5)
    assert pipeline.score(X, Y, qid=QID) == pytest.approx(alone.score(scaled, Y, qid=QID))
    scores = cross_val_score(pipeline, X, Y, cv=rp.QueryKFold(3), params={"qid": QID}, error_score="raise")
    assert scores.shape == (3,)
    search = GridSearchCV(
        pipeline, {"listnet__model__hidden": [(4,), (8,)]}, cv=rp.QueryKFold(3), error_score="raise"
    ).fit(X, Y, qid=QID)
    assert set(search.best_params_) == {"listnet__model__hidden"}


def test_without_routing_a_pipeline_takes_prefixed_arguments():
    pipeline = make_pipeline(StandardScaler(), rp.ListNet(epochs=1)).fit(X, Y, listnet__qid=QID)
    assert np.isfinite(pipeline.predict(X)).all()
    with pytest.raises(rp.RankPolicyError, match=r"enable_metadata_routing=True"):
        GridSearchCV(rp.ListNet(epochs=1), {"learning_rate": [0.1]}, cv=rp.QueryKFold(3)).fit(X, Y, qid=QID)


def test_requests_survive_clone_and_refuse_unknown_names(routing):
    ranker = rp.ListNet().set_fit_request(sample_weight="query_weight")
    assert clone(ranker).get_metadata_routing().fit.requests["sample_weight"] == "query_weight"
    assert rp.ListNet().get_metadata_routing().fit.requests["sample_weight"] is None
    with pytest.raises(rp.RankPolicyError, match=r"fit has no argument 'weights' to route\. Known: qid"):
        rp.ListNet().set_fit_request(weights=True)


def test_no_seed_gives_another_ranker_each_time():
    for make in (
        lambda: rp.ListNet(epochs=1, random_state=None),
        lambda: rp.LambdaMART(num_trees=3, feature_fraction=0.3, random_state=None),
    ):
        predictions = [make().fit(DATA).predict(DATA) for _ in range(4)]
        assert any(not np.array_equal(predictions[0], other) for other in predictions[1:])
        assert make().get_params()["random_state"] is None
        clone(make())


WEIGHTED = [name for name in QUICK if RANKERS[name].uses_query_weights]


@pytest.mark.parametrize("name", WEIGHTED)
def test_sample_weight_per_query_or_per_row_is_the_weight_of_the_query(name):
    from dataclasses import replace

    weights = np.where(np.arange(DATA.num_queries) < 5, 30.0, 1.0)
    expected = RANKERS[name](**QUICK[name]).fit(replace(DATA, query_weights=weights)).predict(DATA)
    by_query = RANKERS[name](**QUICK[name]).fit(X, Y, qid=QID, sample_weight=weights)
    by_row = RANKERS[name](**QUICK[name]).fit(X, Y, qid=QID, sample_weight=weights[QID])
    np.testing.assert_array_equal(by_query.predict(DATA), expected)
    np.testing.assert_array_equal(by_row.predict(DATA), expected)
    reordered = np.random.default_rng(0).permutation(len(X))
    shuffled = RANKERS[name](**QUICK[name]).fit(
        X[reordered], Y[reordered], qid=QID[reordered], sample_weight=weights[QID][reordered]
    )
    assert np.isfinite(shuffled.predict(DATA)).all()


def test_wrong_weights_are_named():
    for weights, message in (
        (np.ones(3), r"one value per query, shape \(30,\), or one per row"),
        (-np.ones(30), "finite, 0 or more and not all 0"),
        (np.zeros(30), "not all 0"),
        (["a"] * 30, "sample_weight must be numbers"),
        (np.arange(len(X), dtype=float), "equal for all rows of a query"),
    ):
        with pytest.raises(rp.RankPolicyError, match=message):
            rp.ListNet(epochs=1).fit(X, Y, qid=QID, sample_weight=weights)


def test_rankers_work_where_scikit_learn_is_not_installed():
    """With the import of scikit-learn forbidden, a ranker is made, refused before fit, fitted, scored and copied."""
    code = """
import sys
sys.modules["sklearn"] = None
import rankpolicy as rp
data = rp.make_web_search(8, random_state=0)
ranker = rp.ListNet(epochs=1)
try:
    ranker.predict(data)
except rp.RankPolicyError as error:
    assert "not fitted" in str(error)
ranker.fit(data)
assert 0 < ranker.score(data) <= 1
assert ranker.n_features_in_ == data.num_features
assert not any(name.startswith("sklearn.") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
