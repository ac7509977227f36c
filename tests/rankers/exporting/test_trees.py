"""Trees as ONNX: every way in which LightGBM splits, with missing values, zeros and categories."""

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers.exporting.graph import Graph
from rankpolicy.rankers.exporting.trees import add_trees

onnxruntime = pytest.importorskip("onnxruntime")
lightgbm = pytest.importorskip("lightgbm")

FACTS = {"rankpolicy_version": "0"}


def scores_of(text, rows):
    graph = Graph(rows.shape[1])
    content = graph.model(add_trees(graph, text), FACTS).SerializeToString()
    return onnxruntime.InferenceSession(content).run(["scores"], {"features": rows.astype(np.float32)})[0]


def trained(rows, labels, *, num_trees=10, categorical=(), **parameters):
    settings = {
        "objective": "regression",
        "min_data_in_leaf": 5,
        "verbosity": -1,
        "seed": 0,
        "min_data_per_group": 5,
        "cat_smooth": 1,
        **parameters,
    }
    data = lightgbm.Dataset(rows, labels, categorical_feature=list(categorical), params=settings)
    return lightgbm.train(settings, data, num_trees)


def drawn_rows(seed, num_rows=500):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(num_rows, 4)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.2] = 0
    rows[:, 3] = rng.integers(0, 40, num_rows)
    return rows


def with_odd_values(rows, seed=0):
    rng = np.random.default_rng(seed)
    odd = np.array([np.nan, 0, -0.0, 1e-35, -1e-35, 2e-35, -2e-35, 1e-40, 3.4e38, -3.4e38], np.float32)
    rows = rows.copy()
    is_odd = rng.random((len(rows), 3)) < 0.3
    rows[:, :3][is_odd] = rng.choice(odd, is_odd.sum())
    rows[::5, 3] = np.nan
    rows[1::5, 3] = rng.choice(np.array([-1, -0.5, 0.5, 39.5, 40, 1000], np.float32), len(rows[1::5]))
    return rows


@pytest.mark.parametrize("zero_as_missing", [False, True])
@pytest.mark.parametrize("use_missing", [False, True])
@pytest.mark.parametrize("missing_in_training", [False, True])
@pytest.mark.parametrize("categorical", [(), (3,)])
def test_every_kind_of_split(zero_as_missing, use_missing, missing_in_training, categorical):
    rows = drawn_rows(0)
    labels = rows[:, 0] + 2 * (rows[:, 1] == 0) + np.isin(rows[:, 3], [3, 8, 21, 35]) * 3
    if missing_in_training:
        rows[::6, 0] = np.nan
    booster = trained(
        rows, labels, categorical=categorical, zero_as_missing=zero_as_missing, use_missing=use_missing, num_leaves=15
    )
    text = booster.model_to_string()
    assert ("num_cat=0" not in text.split("Tree=1\n")[0]) == bool(categorical)
    for new in (rows, with_odd_values(drawn_rows(1))):
        np.testing.assert_allclose(scores_of(text, new), booster.predict(new), rtol=1e-5, atol=1e-5)


def test_many_trees_add_up_without_loss():
    rows = drawn_rows(0)
    booster = trained(rows, 1e4 * rows[:, 0] + rows[:, 1], num_trees=500)
    expected = booster.predict(rows)
    np.testing.assert_allclose(scores_of(booster.model_to_string(), rows), expected, rtol=1e-6, atol=1e-5)


def test_an_average_of_trees_and_trees_of_one_leaf():
    rows = drawn_rows(0)
    forest = trained(rows, rows.sum(1), boosting="rf", bagging_freq=1, bagging_fraction=0.5)
    assert "average_output" in forest.model_to_string()
    np.testing.assert_allclose(scores_of(forest.model_to_string(), rows), forest.predict(rows), atol=1e-5)
    constant = trained(rows, np.full(len(rows), 3.0), num_trees=2)
    np.testing.assert_allclose(scores_of(constant.model_to_string(), rows), constant.predict(rows), atol=1e-5)


def test_a_tree_by_hand():
    # x0 <= 1.5 or missing: 10, else by the category x1, 1 and 3: 20, others and missing: 30.
    text = (
        "tree\nobjective=regression\n\nTree=0\nnum_leaves=3\nnum_cat=1\nsplit_feature=0 1\nthreshold=1.5 0\ndecision_type=10 1\n"
        "left_child=-1 -2\nright_child=1 -3\nleaf_value=10 20 30\ncat_boundaries=0 1\ncat_threshold=10\n\nend of trees\n"
    )
    rows = np.array([[1.5, 1], [np.nan, 1], [2, 1], [2, 3], [2, 2], [2, 64], [2, np.nan]])
    assert scores_of(text, rows).tolist() == [10, 10, 20, 20, 30, 30, 30]


def test_a_model_without_trees_scores_zero():
    text = "tree\nobjective=regression\n\nend of trees\n"
    assert scores_of(text, np.array([[1.0, 2.0], [np.nan, 1.0]])).tolist() == [0, 0]


def test_an_objective_that_changes_the_sum_is_refused():
    with pytest.raises(rp.RankPolicyError, match="trees of the objective 'binary' cannot be exported"):
        add_trees(Graph(2), "tree\nobjective=binary sigmoid:1\n\nend of trees\n")


def test_only_the_best_trees_are_exported(tmp_path):
    data = rp.make_web_search(60, random_state=1)
    ranker = rp.LambdaMART(num_trees=60, patience=5).fit(data[:40], valid=data[40:], progress=False)
    assert ranker.best_iteration_ < ranker._booster.current_iteration()
    ranker.export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (scores,) = session.run(None, {"features": data.features})
    np.testing.assert_allclose(scores, ranker.predict(data), rtol=1e-5, atol=1e-5)
