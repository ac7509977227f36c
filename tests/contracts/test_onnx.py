"""Every ranker becomes an ONNX file with the same scores, or says why it cannot."""

import json

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers import RANKERS
from rankpolicy.rankers.exporting.graph import Graph

onnxruntime = pytest.importorskip("onnxruntime")
pandas = pytest.importorskip("pandas")

NUM_ROWS = 600
QID = np.repeat(np.arange(NUM_ROWS // 10), 10)
PROTECTED = np.arange(NUM_ROWS) % 2
QUICK = {
    "fair-pg-rank": {"epochs": 2, "fairness": "individual"},
    "pg-rank": {"epochs": 2, "num_networks": 2},
    "matching-cross": {"epochs": 2, "model": "mlp"},  # its own model reads texts
    "adarank": {"rounds": 5},
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
    "fair-lp": {},
    "equity-of-attention": {"num_rankings": 2},
}
TREES = ("lambdamart", "boosted-policy", "boosted-regression")
REFUSED = {
    "fa-ir": "all items of its query and their groups",
    "equity-of-attention": "assignments of all items of its query",
    "fair-lp": "linear program over all items of its query",
    "fair-exposure": "optimisation over all items of its query",
}
EXPORTED = [name for name in RANKERS if name not in REFUSED]


def new_ranker(name):
    quick = {"epochs": 2} if "epochs" in RANKERS[name].setting_names() else {}
    quick = {"num_trees": 20, "min_items_in_leaf": 5} if name in TREES else quick
    return RANKERS[name](**QUICK.get(name, quick))


def frame(seed):
    """Numbers with heavy tails, many equal ones, missing ones, a constant; and a category."""
    rng = np.random.default_rng(seed)
    table = pandas.DataFrame(
        {
            "price": rng.lognormal(size=NUM_ROWS),
            "stars": rng.integers(0, 5, NUM_ROWS).astype(float),
            "clicks": np.where(rng.random(NUM_ROWS) < 0.8, 0, rng.normal(size=NUM_ROWS)),
            "constant": np.ones(NUM_ROWS),
            "complete": rng.normal(size=NUM_ROWS),
            "brand": pandas.Categorical(rng.choice(["a", "b", "c", "d", "e", None], NUM_ROWS)),
        }
    )
    table.loc[rng.random(NUM_ROWS) < 0.2, "price"] = np.nan
    return table


TRAIN = frame(0)
LABELS = (TRAIN.price > 1).astype(int) + TRAIN.brand.isin(["b", "e"]) + (TRAIN.clicks != 0)


def exported_scores(path, rows):
    (scores,) = onnxruntime.InferenceSession(path).run(["scores"], {"features": rows.astype(np.float32)})
    return scores


@pytest.mark.parametrize("name", EXPORTED)
def test_scores_of_the_file_are_those_of_the_ranker(name, tmp_path):
    ranker = new_ranker(name).fit(TRAIN, LABELS, qid=QID, protected=PROTECTED, progress=False)
    path = tmp_path / "model.onnx"
    ranker.export_onnx(path)
    new = frame(1)
    new.loc[::7, "complete"] = np.nan  # no value of it was missing in training
    codes = new.brand.cat.codes.where(
        new.brand.notna(), np.nan
    )  # all categories were seen: codes are places in categories_
    rows = new.assign(brand=codes).to_numpy(np.float64)
    assert list(new.brand.cat.categories) == ranker.categories_["brand"]
    np.testing.assert_allclose(exported_scores(path, rows), ranker.predict(new), rtol=1e-5, atol=1e-5)
    new["brand"] = new.brand.astype(object).fillna("unseen").astype("category")
    inputs = ranker.onnx_inputs(new[sorted(new.columns)])
    (scores,) = onnxruntime.InferenceSession(path).run(None, inputs)
    np.testing.assert_allclose(scores, ranker.predict(new), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", EXPORTED)
def test_scores_at_and_beside_every_edge(name, tmp_path):
    numbers = TRAIN.drop(columns=["brand", "price"]).to_numpy(np.float32)
    ranker = new_ranker(name).fit(numbers, LABELS, qid=QID, protected=PROTECTED, progress=False)
    path = tmp_path / "model.onnx"
    ranker.export_onnx(path)
    graph = Graph(ranker.num_features_)
    ranker._onnx_scores(graph)
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(2000, numbers.shape[1])).astype(np.float32)
    for feature, edges in graph.edges.items():
        at = np.concatenate([*edges, numbers[:, feature], [0, 1e-35, -1e-35]]).astype(np.float32)
        beside = np.concatenate([at, np.nextafter(at, np.float32(-9e9)), np.nextafter(at, np.float32(9e9))])
        rows[:1800, feature] = rng.choice(beside, 1800)
    rows[rng.random(rows.shape) < 0.05] = np.nan
    np.testing.assert_allclose(exported_scores(path, rows), ranker.predict(rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", EXPORTED)
def test_the_file_names_method_version_and_features(name, tmp_path):
    ranker = new_ranker(name).fit(TRAIN, LABELS, qid=QID, protected=PROTECTED, progress=False)
    ranker.save(tmp_path / "model.rp")
    rp.load(tmp_path / "model.rp").export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    facts = session.get_modelmeta().custom_metadata_map
    assert (facts["method"], facts["rankpolicy_version"]) == (name, rp.__version__)
    assert json.loads(facts["feature_names"]) == list(TRAIN.columns)
    assert json.loads(facts["categories"]) == {"brand": ["a", "b", "c", "d", "e"]}
    assert [(given.name, given.shape, given.type) for given in session.get_inputs()] == [
        ("features", ["row", 6], "tensor(float)")
    ]
    assert [(given.name, given.shape, given.type) for given in session.get_outputs()] == [
        ("scores", ["row"], "tensor(float)")
    ]
    assert exported_scores(tmp_path / "model.onnx", np.zeros((1, 6))).shape == (1,)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.rp"]


@pytest.mark.parametrize("name", REFUSED)
def test_others_say_why(name, tmp_path):
    numbers = TRAIN.drop(columns=["brand"])
    ranker = new_ranker(name).fit(numbers, LABELS, qid=QID, protected=PROTECTED, progress=False)
    with pytest.raises(rp.RankPolicyError, match=REFUSED[name]):
        ranker.export_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", RANKERS)
def test_an_unfitted_ranker_is_refused(name, tmp_path):
    with pytest.raises(rp.RankPolicyError, match="is not fitted yet"):
        new_ranker(name).export_onnx(tmp_path / "model.onnx")
