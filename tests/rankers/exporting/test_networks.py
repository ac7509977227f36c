"""Networks and linear rankers of features as ONNX, with every scaling and every model that reads features."""

import importlib.util

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.data.scaling import SCALINGS, FeatureScaling, fit_scaling
from rankpolicy.models.members import MODELS
from rankpolicy.rankers.exporting import export
from rankpolicy.rankers.exporting.graph import Graph
from rankpolicy.rankers.exporting.scaling import add_scaling

onnxruntime = pytest.importorskip("onnxruntime")

DATA = rp.make_web_search(30, num_features=8, random_state=2)
FACTS = {"rankpolicy_version": "0"}
OF_FEATURES = [name for name in MODELS if MODELS[name].reads == "features"]
OF_SINGLE_ITEMS = [name for name in OF_FEATURES if MODELS[name]().context == "none"]
BY_QUERY = [
    rp.PGRank(scaling="query_minmax", epochs=1),
    rp.RankSVM(scaling="query_minmax"),
    rp.PGRank(model=rp.models.MLP(query_context="mean"), epochs=1),
    rp.ListNet(model=rp.models.ListTransformer(width=8, num_heads=4), num_networks=2, epochs=1),
    rp.Regression(model="list-transformer", scaling="query_minmax", epochs=1),
]


def own_network(num_features):
    return torch.nn.Sequential(
        torch.nn.Linear(num_features, 4), torch.nn.GELU(), torch.nn.Linear(4, 1), torch.nn.Flatten(0)
    )


def session_of(ranker, tmp_path):
    ranker.export_onnx(tmp_path / "model.onnx")
    return onnxruntime.InferenceSession(tmp_path / "model.onnx")


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", SCALINGS)
def test_scaled_features_are_those_of_the_scaling(kind, missing):
    rng = np.random.default_rng(0)
    features = np.stack(
        [rng.lognormal(3, 2, 300), rng.integers(0, 3, 300), np.ones(300), np.where(rng.random(300) < 0.95, 0, 7)], 1
    ).astype(np.float32)
    if missing:
        features[rng.random(features.shape) < 0.2] = np.nan
    data = rp.from_arrays(features, group=np.full(30, 10))
    scaling = fit_scaling(kind, data)
    graph = Graph(4)
    scaled = add_scaling(graph, scaling)
    graph.add("Identity", scaled, output="scaled")
    model = graph.model(graph.add("ReduceSum", scaled, np.array([1]), keepdims=1), FACTS)
    model.graph.output.append(type(model.graph.output[0])(name="scaled"))
    new = np.concatenate([features, features + np.float32(0.3), -features])
    new[:5] = np.nan
    offsets = np.arange(0, len(new) + 1, 10)
    inputs = {"features": new} | ({"query": np.arange(len(new)) // 10} if graph.reads_queries else {})
    (ours,) = onnxruntime.InferenceSession(model.SerializeToString()).run(["scaled"], inputs)
    np.testing.assert_allclose(ours, scaling.apply(new, offsets), rtol=1e-6, atol=1e-6)


def test_quantiles_by_hand():
    knots = np.array([[0.0, 0.0, 0.0, 1.0, 3.0]], np.float32)
    scaling = FeatureScaling(
        kind="quantile", knots=knots, center=np.zeros(2, np.float32), spread=np.ones(2, np.float32)
    )
    graph = Graph(1)
    content = graph.model(graph.columns(add_scaling(graph, scaling), np.array([1])), FACTS).SerializeToString()
    rows = np.array([[2.0], [0.0], [9.0], [-1.0], [0.5], [1.0], [np.nan]], np.float32)
    (quantiles,) = onnxruntime.InferenceSession(content).run(None, {"features": rows})
    assert quantiles.tolist() == [0.875, 0.25, 1.0, 0.25, 0.625, 0.75, 0.25]


@pytest.mark.parametrize("num_networks", [1, 3])
@pytest.mark.parametrize("model", [*OF_SINGLE_ITEMS, own_network])
def test_every_model_of_features(model, num_networks, tmp_path):
    if model is own_network:
        pytest.importorskip("onnxscript")
    ranker = rp.PGRank(model=model, num_networks=num_networks, epochs=1).fit(DATA, progress=False)
    session = session_of(ranker, tmp_path)
    for rows in (DATA.features, DATA.features[:1]):
        (scores,) = session.run(None, {"features": rows})
        np.testing.assert_allclose(scores, ranker.predict(rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ranker", BY_QUERY)
def test_a_ranker_of_whole_queries_reads_the_query_of_each_row(ranker, tmp_path):
    ranker.fit(DATA, progress=False)
    session = session_of(ranker, tmp_path)
    assert [given.name for given in session.get_inputs()] == ["features", "query"]
    shuffled = np.random.default_rng(0).permutation(DATA.num_items)
    rows, query = DATA.features[shuffled], DATA.query_of_item[shuffled]
    inputs = ranker.onnx_inputs(rows, qid=query)
    np.testing.assert_array_equal(inputs["features"], rows)
    for given in (inputs, {"features": rows, "query": query}):
        (scores,) = session.run(None, given)
        np.testing.assert_allclose(scores, ranker.predict(rows, qid=query), rtol=1e-5, atol=1e-5)


def test_scores_that_differ_are_refused_and_nothing_is_written(tmp_path, monkeypatch):
    ranker = rp.PGRank(epochs=1).fit(DATA, progress=False)
    predict = type(ranker).predict
    monkeypatch.setattr(type(ranker), "predict", lambda self, X: predict(self, X) + 1e-3)
    with pytest.raises(rp.RankPolicyError, match=r"within 1e-05; they differ by up to 0\.001, and no file is written"):
        ranker.export_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    ranker = rp.PGRank(epochs=1).fit(DATA, progress=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(rp.MissingDependencyError, match=r"ONNX export needs onnx: pip install 'rankpolicy\[onnx\]'"):
        ranker.export_onnx(tmp_path / "model.onnx")


def test_without_onnxruntime_the_file_is_written_unchecked(tmp_path, monkeypatch):
    ranker = rp.PGRank(epochs=1).fit(DATA, progress=False)
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else found(name))
    monkeypatch.setattr(export, "check_scores", None)
    ranker.export_onnx(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").exists()


def test_where_no_folder_is(tmp_path):
    ranker = rp.PGRank(epochs=1).fit(DATA, progress=False)
    with pytest.raises(rp.RankPolicyError, match="must be in a directory that exists"):
        ranker.export_onnx(tmp_path / "no" / "model.onnx")


class NeedsNumpy(torch.nn.Module):
    """Leaves torch on its way, so that what torch exports is a constant."""

    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, 1)

    def forward(self, features):
        scores = self.layer(features).squeeze(-1)
        return scores if scores.requires_grad else torch.from_numpy(np.tanh(scores.numpy()))


class RefusesExport(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(width, 1)

    def forward(self, features):
        if torch.compiler.is_compiling():
            raise ValueError("not here")
        return self.layer(features).squeeze(-1)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NeedsNumpy, "the exported scores must be the ranker's"),
        (RefusesExport, r"torch cannot export this network, RefusesExport, to ONNX: .* Use save\(path\)"),
    ],
)
def test_a_network_that_torch_cannot_export_is_refused(model, message, tmp_path):
    pytest.importorskip("onnxscript")
    ranker = rp.PGRank(model=model, epochs=1).fit(DATA, progress=False)
    with pytest.raises(rp.RankPolicyError, match=message):
        ranker.export_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_parity_between_groups_has_no_graph_but_the_scores_before_it_have(tmp_path):
    groups = np.arange(DATA.num_items) % 2
    ranker = rp.FairPGRank(fairness=rp.fairness.GroupExposure(parity=1.0), epochs=1).fit(
        DATA, protected=groups, progress=False
    )
    with pytest.raises(
        rp.RankPolicyError, match=r"with parity=1 FairPGRank cannot be exported.*set_params\(fairness__parity=0\.0\)"
    ):
        ranker.export_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
    ranker.set_params(fairness__parity=0.0)
    (scores,) = session_of(ranker, tmp_path).run(None, {"features": DATA.features})
    np.testing.assert_allclose(scores, ranker.predict(DATA), rtol=1e-5, atol=1e-5)


def test_other_networks_of_texts_are_refused(tmp_path):
    texts = rp.data.from_texts(["a b", "b c"], [["a", "c d"], ["b", "d"]], [[1, 0], [0, 1]])
    ranker = rp.PGRank(model=rp.models.MCAN(embedding_size=4, recurrent=4), epochs=1).fit(texts, progress=False)
    with pytest.raises(rp.RankPolicyError, match=r"this ranker's network is MCANNetwork\. Use save\(path\)"):
        ranker.export_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
