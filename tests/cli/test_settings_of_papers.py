"""What the papers vary is set from the command line as from Python, with the same scores."""

import json

import numpy as np
import pytest

import rankpolicy as rp

TEXT_MODEL = ["model.recurrent=4", "model.embedding_size=4", "epochs=2", "learning_rate=0.01"]


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "qa.jsonl"
    rows = [
        {"query": f"where is the {colour} ball?", "items": ["the red ball", "the blue ball", "a box"], "labels": labels}
        for colour, labels in (("red", [1, 0, 1]), ("blue", [0, 1, 1])) * 3
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def assigned(settings):
    return [argument for setting in settings for argument in ("--set", setting)]


@pytest.mark.parametrize(
    ("texts", "ranker"),
    [
        (
            ["model.initial_range=0.001", "fairness.merit=sqrt", "reward=ap", "estimator=gumbel", "num_samples=4"],
            rp.FairPGRank(
                model=rp.models.Linear(initial_range=0.001),
                fairness=rp.fairness.IndividualExposure(merit="sqrt"),
                reward="ap",
                estimator="gumbel",
                num_samples=4,
            ),
        ),
        (
            ["model=mlp", "model.hidden=4", "model.initial_range=0.03125", "fairness.merit=square", "betas=0,0.9"],
            rp.FairPGRank(
                model=rp.models.MLP(hidden=(4,), initial_range=1 / 32),
                fairness=rp.fairness.IndividualExposure(merit="square"),
                betas=(0.0, 0.9),
            ),
        ),
        (
            [
                "model=highway",
                "model.hidden=4",
                "model.dropout_after_projection=true",
                "reward=rr",
                "estimator=reinforce",
            ],
            rp.FairPGRank(
                model=rp.models.Highway(hidden=(4,), dropout_after_projection=True),
                fairness="individual",
                reward="rr",
                estimator="reinforce",
            ),
        ),
    ],
)
def test_fair_pg_rank_from_the_command_line(rankpolicy, folder, tmp_path, texts, ranker):
    settings = assigned(["fairness=individual", "epochs=2", *texts])
    files = ["--data", folder / "train.txt", "--out", tmp_path / "model.rp"]
    trained = rankpolicy("train", "--method", "fair-pg-rank", *files, *settings)
    assert trained.status == 0, trained.stderr
    data = rp.read_letor(folder / "train.txt")
    expected = ranker.set_params(epochs=2).fit(data, progress=False).predict(data)
    np.testing.assert_allclose(rp.load(tmp_path / "model.rp").predict(data), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("texts", "model"),
    [
        (["model.head=plain", "model.hidden=4,3"], {"head": "plain", "hidden": (4, 3)}),
        (
            ["model.dropout_after_projection=true", "model.hidden=4"],
            {"dropout_after_projection": True, "hidden": (4,)},
        ),
    ],
)
@pytest.mark.parametrize("reward", ["ap", "rr", "err"])
def test_fair_pg_rank_over_texts_from_the_command_line(rankpolicy, questions, tmp_path, texts, model, reward):
    fair = ["fairness=individual", f"reward={reward}", "estimator=gumbel"]
    files = ["--data", questions, "--out", tmp_path / "model.rp"]
    settings = assigned(["model=mcan", *TEXT_MODEL, *texts, *fair])
    trained = rankpolicy("train", "--method", "fair-pg-rank", *files, *settings)
    assert trained.status == 0, trained.stderr
    data = rp.data.read_question_answering(questions)
    network = rp.models.MCAN(recurrent=4, embedding_size=4, **model)
    ranker = rp.FairPGRank(
        model=network, fairness="individual", reward=reward, estimator="gumbel", epochs=2, learning_rate=0.01
    )
    expected = ranker.fit(data, progress=False).predict(data)
    np.testing.assert_allclose(rp.load(tmp_path / "model.rp").predict(data), expected, rtol=1e-5)


def test_a_sweep_over_gamma_begins_at_0(rankpolicy, folder, tmp_path):
    settings = ["num_samples=2", "max_positions=3", "epsilon=0.2", "control=mean", "epochs=1", "model.hidden=4"]
    files = ["--data", folder / "train.txt", "--valid", folder / "vali.txt", "--out", tmp_path / "runs"]
    search = ["--space", "gamma=0.0,0.5,1.0", "--num-trials", 6, "--json"]
    swept = rankpolicy("tune", "--method", "bandit-rank", *files, *assigned(settings), *search)
    assert swept.status == 0, swept.stderr
    assert 0.0 in [trial["settings"]["gamma"] for trial in swept.json["trials"]]
