import json

import numpy as np
import pytest

import rankpolicy as rp

MCAN = ["model=mcan", "model.hidden=4,4", "model.recurrent=4", "model.embedding_size=4", "epochs=1"]


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "qa.jsonl"
    rows = [
        {"query": f"where is the {colour} ball?", "items": ["the red ball", "the blue ball"], "labels": labels}
        for colour, labels in (("red", [1, 0]), ("blue", [0, 1])) * 3
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_texts_are_trained_on_evaluated_and_ranked(rankpolicy, questions, tmp_path):
    model = tmp_path / "model.rp"
    settings = [part for setting in MCAN for part in ("--set", setting)]
    trained = rankpolicy(
        "train", "--method", "listnet", "--data", questions, "--valid", questions, "--out", model, *settings
    )
    assert trained.status == 0, trained.stderr
    evaluated = rankpolicy("evaluate", model, "--data", questions, "--metrics", "map", "--json")
    expected = rp.evaluate(rp.load(model), rp.data.read_question_answering(questions), ["map"]).means["map"]
    assert evaluated.json["metrics"]["map"]["mean"] == pytest.approx(expected)
    rankpolicy("predict", model, "--data", questions, "--out", tmp_path / "s.txt")
    np.testing.assert_allclose(
        np.loadtxt(tmp_path / "s.txt"), rp.load(model).predict(rp.data.read_question_answering(questions)), rtol=1e-6
    )


def test_texts_for_a_method_of_features_are_refused_in_words(refused, questions, tmp_path):
    message = refused("train", "--method", "rank-svm", "--data", questions, "--out", tmp_path / "model.rp")
    assert "reads features; training data has none, only texts" in message


def test_features_for_a_text_model_are_refused_in_words(refused, folder, tmp_path):
    message = refused(
        "train",
        "--method",
        "listnet",
        "--data",
        folder / "train.txt",
        "--set",
        "model=mcan",
        "--out",
        tmp_path / "m.rp",
    )
    assert "reads texts; training data has 8 features and no texts" in message
