"""Models exported for search engines, read back by the grammar of each engine or by the real library, score as the ranker does."""

import copy
import json

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers.exporting.engine_formats import FORMATS
from rankpolicy.rankers.exporting.solr import without_slack
from tests.integrations import engines

NAMES = ["price", "stars", "attribute(age)", "clicks"]
QID = np.repeat(np.arange(40), 10)
LABELS = np.arange(400) % 3 % 2
TREES = {
    "lambdamart": rp.LambdaMART(num_trees=30, min_items_in_leaf=5),
    "boosted-policy": rp.BoostedPolicy(num_trees=10, min_items_in_leaf=5),
    "boosted-regression": rp.BoostedRegression(num_trees=30, min_items_in_leaf=5, num_leaves=31),
}
LINEAR = {
    "coordinate-ascent": rp.CoordinateAscent(restarts=1, max_passes=2),
    "rank-svm": rp.RankSVM(scaling="none"),
    "linear network": rp.PGRank(model="linear", scaling="standardize", epochs=2, num_networks=2),
}
NETWORKS = {
    "one network": rp.PGRank(scaling="standardize", epochs=2, num_networks=1),
    "three networks": rp.Regression(scaling="standardize", epochs=2, num_networks=3),
    "unscaled": rp.PGRank(model=rp.models.MLP(hidden=(8,)), scaling="none", epochs=2, num_networks=2),
}


def drawn_rows(seed, *, missing=0.0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(400, 4)).astype(np.float32)
    rows[:, 1] = rng.integers(-2, 4, 400)  # many values at thresholds
    rows[:, 3] = np.where(rng.random(400) < 0.7, 0, rng.lognormal(size=400))
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows


def fitted(ranker, *, missing=0.0):
    rows = drawn_rows(0, missing=missing)
    labels = (np.nan_to_num(rows[:, 0]) > 0.5).astype(int) + (rows[:, 1] > 0) + np.isnan(rows[:, 3])
    data = rp.from_arrays(rows, labels, qid=QID, feature_names=NAMES)
    return copy.copy(ranker).fit(data, progress=False)


def new_rows(ranker, *, missing=0.1, smallest=0.0):
    """New rows: values at thresholds and beside them, zeros, missing values."""
    rng, rows = np.random.default_rng(1), drawn_rows(2)
    for tree in getattr(ranker._engine_model(NAMES), "trees", ()):
        for feature, threshold in zip(tree.feature, tree.threshold, strict=True):
            if not smallest <= abs(threshold) < 1e38:
                continue
            at = np.float32(threshold)
            beside = [at, np.nextafter(at, np.float32(-np.inf)), np.nextafter(at, np.float32(np.inf))]
            rows[rng.integers(0, 400, 3), feature] = beside
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows


def exported(ranker, format, folder):
    paths = ranker.export(folder / "model.json", format=format)
    assert all(path.is_file() for path in paths)
    assert paths[0] == folder / "model.json"
    return [json.loads(path.read_text()) for path in paths if path.suffix == ".json"]


def assert_equal_scores(scores, ranker, rows):
    expected = ranker.predict(rows)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "missing in training"])
@pytest.mark.parametrize("name", TREES)
def test_trees_in_engines_that_know_missing_values(name, missing, tmp_path):
    ranker = fitted(TREES[name], missing=missing)
    rows = new_rows(ranker)
    assert_equal_scores(engines.plugin(*exported(ranker, "opensearch", tmp_path), rows), ranker, rows)
    assert_equal_scores(engines.vespa(*exported(ranker, "vespa", tmp_path), rows), ranker, rows)
    rows = new_rows(ranker, smallest=1e-6)  # nearer to 0, Solr's slack is coarser than float32
    assert_equal_scores(engines.solr(*exported(ranker, "solr", tmp_path), rows), ranker, rows)


@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "missing in training"])
@pytest.mark.parametrize("name", TREES)
def test_xgboost_loads_trees_and_scores_alike(name, missing, tmp_path):
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is part of the extra 'benchmarks'")
    ranker = fitted(TREES[name], missing=missing)
    rows = new_rows(ranker)
    ranker.export(tmp_path / "model.json", format="xgboost")
    model = xgboost.XGBRanker()
    model.load_model(tmp_path / "model.json")
    assert model.objective == "rank:ndcg"  # what eland takes
    assert_equal_scores(model.predict(rows), ranker, rows)
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    assert booster.feature_names == NAMES
    definition = json.loads(exported(ranker, "opensearch", tmp_path)[0]["model"]["model"]["definition"])
    dumped = [json.loads(tree) for tree in booster.get_dump(dump_format="json")]
    assert [tree["split"] for tree in definition] == [tree["split"] for tree in dumped]
    np.testing.assert_allclose(
        [tree["split_condition"] for tree in definition], [tree["split_condition"] for tree in dumped], rtol=1e-6
    )


@pytest.mark.parametrize("name", TREES)
def test_ranklib_reads_a_missing_value_as_zero(name, tmp_path):
    ranker = fitted(TREES[name])
    rows = new_rows(ranker)
    assert_equal_scores(engines.plugin(*exported(ranker, "opensearch-ranklib", tmp_path), rows), ranker, rows)
    learned = fitted(TREES[name], missing=0.2)
    with pytest.raises(rp.RankPolicyError, match="RankLib reads a missing value as 0, and these trees were trained on"):
        learned.export(tmp_path / "other.json", format="opensearch-ranklib")
    assert not (tmp_path / "other.json").exists()


def test_elasticsearch_gets_the_trees_by_eland(tmp_path):
    ranker = fitted(TREES["lambdamart"], missing=0.2)
    model, config = exported(ranker, "elasticsearch", tmp_path)
    assert model["learner"]["objective"]["name"] == "rank:ndcg"
    extractors = [entry["query_extractor"] for entry in config["learning_to_rank"]["feature_extractors"]]
    assert [extractor["feature_name"] for extractor in extractors] == NAMES
    transformers = pytest.importorskip("eland.ml.transformers", reason="eland needs pandas before 3")
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is part of the extra 'benchmarks'")
    booster = xgboost.XGBRanker()
    booster.load_model(tmp_path / "model.json")
    ensemble = transformers.get_model_transformer(booster, feature_names=NAMES).transform().to_dict()["ensemble"]
    rows = new_rows(ranker)
    assert_equal_scores(engines.elasticsearch(ensemble, rows), ranker, rows)


@pytest.mark.parametrize("name", LINEAR)
def test_weighted_sums(name, tmp_path):
    ranker = fitted(LINEAR[name])
    rows = new_rows(ranker)
    assert_equal_scores(engines.solr(*exported(ranker, "solr", tmp_path), rows), ranker, rows)
    # The plugin's weighted sum has no constant: differences of scores are those of the ranker.
    scores, expected = engines.plugin(*exported(ranker, "opensearch", tmp_path), rows), ranker.predict(rows)
    np.testing.assert_allclose(scores - scores[0], expected - expected[0], atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    ranker = fitted(NETWORKS[name])
    rows = new_rows(ranker)
    assert_equal_scores(engines.solr(*exported(ranker, "solr", tmp_path), rows), ranker, rows)
    model, schema = ranker.export(tmp_path / "net.onnx", format="vespa-onnx")
    session = onnxruntime.InferenceSession(model)
    scores = [session.run(["scores"], {"features": row[None]})[0].sum() for row in rows[:20]]
    assert_equal_scores(scores, ranker, rows[:20])
    text = schema.read_text()
    assert "file: models/net.onnx" in text
    assert "tensor<float>(row[1],feature[4]):[[price, stars, attribute(age), clicks]]" in text
    assert text.count("function ") == 4  # of the three plain names, and of the tensor


def test_a_constant_feature_and_a_ranker_without_names(tmp_path):
    rows = drawn_rows(0)
    rows[:, 2] = 3
    ranker = rp.PGRank(scaling="standardize", epochs=2).fit(rows, LABELS, qid=QID, progress=False)
    model, store = exported(ranker, "solr", tmp_path)
    assert [feature["name"] for feature in store] == ["feature_1", "feature_2", "feature_3", "feature_4"]
    assert_equal_scores(engines.solr(model, store, rows), ranker, rows)


def test_trees_that_split_nothing(tmp_path):
    ranker = rp.BoostedRegression(num_trees=2, min_items_in_leaf=300).fit(
        drawn_rows(0), LABELS, qid=QID, progress=False
    )
    rows = drawn_rows(1, missing=0.2)
    assert_equal_scores(engines.plugin(*exported(ranker, "opensearch", tmp_path), rows), ranker, rows)
    assert_equal_scores(engines.plugin(*exported(ranker, "opensearch-ranklib", tmp_path), rows), ranker, rows)
    assert_equal_scores(engines.solr(*exported(ranker, "solr", tmp_path), rows), ranker, rows)


def test_solrs_slack_is_undone():
    rng = np.random.default_rng(0)
    thresholds = np.float32(rng.normal(size=10_000) * 10.0 ** rng.integers(-3, 9, 10_000))
    thresholds = np.concatenate([thresholds, np.float32([0, 0.5, -0.5, 16, 1e30, -1e30])])
    compared = without_slack(thresholds) + np.float32(1e-6)
    is_large = (np.abs(thresholds) > 1e-5) | (thresholds == 0)
    assert (compared == thresholds)[is_large].mean() > 0.999
    assert (thresholds - compared >= 0).all()
    assert (thresholds - compared <= 2 * np.spacing(np.abs(thresholds) + np.float32(1e-6))).all()


REFUSED = {
    "xgboost": ("a<b", "takes names of features without"),
    "elasticsearch": ("f7", "takes names of features"),
    "vespa": ("my price", "that are rank features or functions"),
    "solr": ("a,b", "without commas and ="),
    "opensearch": ("a\tb", "without control characters"),
}


@pytest.mark.parametrize("format", REFUSED)
def test_names_that_an_engine_refuses(format, tmp_path):
    name, message = REFUSED[format]
    data = rp.from_arrays(drawn_rows(0), LABELS, qid=QID, feature_names=[*NAMES[:3], name])
    ranker = rp.BoostedRegression(num_trees=2).fit(data, progress=False)
    with pytest.raises(rp.RankPolicyError, match=message):
        ranker.export(tmp_path / "model.json", format=format)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_rankers_that_an_engine_cannot_compute_are_told_to_become_trees(format, tmp_path):
    quantiles = rp.PGRank(model="list-transformer", epochs=1, num_networks=1).fit(
        drawn_rows(0), LABELS, qid=QID, progress=False
    )
    with pytest.raises(rp.RankPolicyError, match=r"Make trees of the ranker first: rankpolicy\.distil"):
        quantiles.export(tmp_path / f"model{FORMATS[format].suffix}", format=format)
    assert not list(tmp_path.iterdir())


def test_categories_unknown_formats_and_wrong_endings(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(drawn_rows(0), columns=NAMES)
    frame["brand"] = pandas.Categorical(np.array(list("abcd"))[np.random.default_rng(0).integers(0, 4, 400)])
    ranker = rp.BoostedRegression(num_trees=5, min_items_in_leaf=5).fit(
        frame, frame.brand.isin(["a", "c"]).astype(int), qid=QID, progress=False
    )
    with pytest.raises(rp.RankPolicyError, match="feature 'brand' is split by category"):
        ranker.export(tmp_path / "model.json", format="solr")
    with pytest.raises(rp.RankPolicyError, match=r"Unknown format 'slor'. Did you mean 'solr'\? Known: opensearch, "):
        ranker.export(tmp_path / "model.json", format="slor")
    with pytest.raises(rp.RankPolicyError, match=r"must end in .json; got 'model.txt'"):
        ranker.export(tmp_path / "model.txt", format="solr")
    with pytest.raises(rp.RankPolicyError, match="is not fitted yet"):
        rp.LambdaMART().export(tmp_path / "model.json", format="solr")
    assert not list(tmp_path.iterdir())
