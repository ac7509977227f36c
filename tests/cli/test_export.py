"""rankpolicy export: the ONNX file scores as the model does; what cannot be exported is refused in words."""

import importlib.util
import json
import shutil

import numpy as np
import pytest

import rankpolicy as rp


@pytest.fixture
def onnxruntime():
    return pytest.importorskip("onnxruntime")


def test_the_file_scores_as_the_model(rankpolicy, folder, tmp_path, onnxruntime):
    out = tmp_path / "model.onnx"
    result = rankpolicy("export", folder / "model.rp", "--out", out, "--json")
    assert result.status == 0
    assert result.json == {
        "model": str(folder / "model.rp"),
        "method": "pg-rank",
        "out": str(out),
        "checked": True,
        "inputs": {"features": ["row", 8]},
        "outputs": {"scores": ["row"]},
    }
    data = rp.read_letor(folder / "test.txt", num_features=8)
    (scores,) = onnxruntime.InferenceSession(out).run(["scores"], {"features": data.features})
    np.testing.assert_allclose(scores, rp.load(folder / "model.rp").predict(data), atol=1e-5)


def test_one_line_says_what_was_written(rankpolicy, folder, tmp_path):
    result = rankpolicy("export", folder / "model.rp", "--out", tmp_path / "model.onnx")
    assert result.stdout == f"pg-rank, features (row, 8): {tmp_path / 'model.onnx'}\n"
    assert result.stderr == ""


def test_a_file_that_was_not_checked_is_announced(rankpolicy, folder, tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "onnxruntime" else found(name, *a)
    )
    result = rankpolicy("export", folder / "model.rp", "--out", tmp_path / "model.onnx")
    assert result.status == 0
    assert "was not compared with the model" in result.stderr


def test_bad_calls_are_one_line(refused, folder, tmp_path, monkeypatch):
    model = shutil.copy(folder / "model.rp", tmp_path / "model.onnx")  # the wrong name on purpose
    content = model.read_bytes()
    assert "--out must end in .onnx; got 'model.txt'" in refused("export", model, "--out", tmp_path / "model.txt")
    assert "--out must not be a file that is read" in refused("export", model, "--out", model)
    assert model.read_bytes() == content
    assert "is not a rankpolicy model" in refused("export", folder / "train.txt", "--out", tmp_path / "a.onnx")
    assert "no model file at" in refused("export", tmp_path / "none.rp", "--out", tmp_path / "a.onnx")
    assert "--out must be in a directory that exists" in refused("export", model, "--out", tmp_path / "no" / "a.onnx")
    rp.bandits.DcmTS(num_items=3, cutoff=2).save(tmp_path / "bandit.rp")
    assert "must hold a ranker" in refused("export", tmp_path / "bandit.rp", "--out", tmp_path / "a.onnx")
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "onnx" else found(name, *a))
    assert "ONNX export needs onnx: pip install 'rankpolicy[onnx]'" in refused(
        "export", model, "--out", tmp_path / "a.onnx"
    )
    assert not (tmp_path / "a.onnx").exists()


def test_a_ranker_that_has_no_graph_is_refused(refused, tmp_path):
    data = rp.make_web_search(10, random_state=0)
    ranker = rp.FairLP().fit(data, protected=lambda dataset: np.arange(dataset.num_items) % 2, progress=False)
    ranker.save(tmp_path / "fair.rp")
    assert "FairLP cannot be exported to ONNX: " in refused(
        "export", tmp_path / "fair.rp", "--out", tmp_path / "a.onnx"
    )


def test_a_network_becomes_trees_and_these_the_files_of_an_engine(rankpolicy, refused, folder, tmp_path):
    trees, out = tmp_path / "trees.rp", tmp_path / "model.json"
    assert "search engines compute plain networks; this PGRank is none" in refused(
        "export", folder / "model.rp", "--format", "solr", "--out", out
    )
    result = rankpolicy(
        "distil", folder / "model.rp", "--data", folder / "train.txt", "--num-trees", "20", "--out", trees, "--json"
    )
    assert result.json["trees"] == 20
    assert result.json["correlation"] > 0.9
    result = rankpolicy("export", trees, "--format", "opensearch", "--out", out)
    assert result.stdout == f"boosted-regression for opensearch: {out}, {tmp_path / 'model.features.json'}\n"
    body = json.loads(out.read_text())["model"]
    assert (body["name"], body["model"]["type"]) == ("model", "model/xgboost+json")
    assert "Unknown format 'lucene'" in refused("export", trees, "--format", "lucene", "--out", out)
    assert "must end in .json; got 'model.txt'" in refused(
        "export", trees, "--format", "solr", "--out", tmp_path / "model.txt"
    )
