"""What a review found: labels out of range, results that would replace an input, checkpoints of other trainings, and more."""

import os

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.cli.main import run
from rankpolicy.data import write_letor

DATA = rp.make_web_search(12, items_per_query=(3, 6), num_features=8, random_state=0)
LARGE = rp.from_arrays(DATA.features, DATA.labels * 500, group=DATA.sizes)


def test_labels_whose_gain_is_out_of_range_are_refused_instead_of_leaving_queries_out():
    scores = np.arange(DATA.num_items, dtype=float)
    with pytest.raises(rp.RankPolicyError, match="labels must be at most 1000; the highest is"):
        rp.evaluate(scores, LARGE, "ndcg@10, map")
    linear = rp.evaluate(scores, LARGE, "ndcg@10", conventions=rp.Conventions(gain="linear"))
    assert np.isfinite(linear["ndcg@10"]).all()
    ranker = rp.Regression(epochs=1).fit(DATA, progress=False)
    with pytest.raises(rp.RankPolicyError, match="at most 1000"):
        ranker.score(LARGE)


def test_results_never_stand_beside_the_input_they_could_replace(tmp_path, capsys):
    rows = [(f"s{s}", "q", i, p, (s + p) % 2) for s in range(12) for p, i in enumerate("ab" if s % 2 else "ba", 1)]
    log = tmp_path / "propensities.csv"
    log.write_text("session,query,item,position,clicked\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    (tmp_path / "bias.json").write_text("kept")
    assert run(["clicks", "bias", str(log), "--resamples", "0", "--out", str(tmp_path)]) == 2
    assert "--out must be a directory without the input" in capsys.readouterr().err
    assert (tmp_path / "bias.json").read_text() == "kept"
    assert not (tmp_path / "run.json").exists()


def test_a_checkpoint_of_another_training_is_kept(tmp_path):
    path = tmp_path / "state"
    rp.ListNet(epochs=1, random_state=0).fit(DATA, checkpoint=path, progress=False)
    before = path.read_bytes()
    with pytest.raises(rp.RankPolicyError, match="must not replace that of another training"):
        rp.ListNet(epochs=1, learning_rate=0.5, random_state=0).fit(DATA, checkpoint=path, progress=False)
    with pytest.raises(rp.RankPolicyError, match="must not replace that of another training"):
        rp.ListNet(epochs=1, random_state=0).fit(DATA[:6], checkpoint=path, progress=False)
    assert path.read_bytes() == before
    with pytest.warns(UserWarning, match="training starts afresh"):
        rp.ListNet(epochs=1, random_state=0).fit(DATA, checkpoint=path, progress=False)


def test_a_pipe_is_refused_in_words(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(rp.RankPolicyError, match="it is a pipe"):
        rp.read_letor(tmp_path / "pipe")


def test_a_seed_is_given_once_and_too_large_a_network_is_one_line(tmp_path, capsys):
    write_letor(DATA, tmp_path / "in.txt")
    train = [
        "train",
        "--method",
        "pg-rank",
        "--data",
        str(tmp_path / "in.txt"),
        "--out",
        str(tmp_path / "m.rp"),
        "--set",
        "epochs=1",
    ]
    assert run([*train, "--seed", "5", "--set", "random_state=4"]) == 2
    assert "the seed is given twice" in capsys.readouterr().err
    assert run([*train, "--set", "model.hidden=999999999,999999999"]) == 2
    assert "more memory than there is" in capsys.readouterr().err


def test_progress_that_was_asked_for_is_shown_at_the_end_of_a_short_training(capsys):
    rp.ListNet(epochs=2).fit(DATA, verbose=True)
    assert "ListNet 2/2" in capsys.readouterr().err
    rp.ListNet(epochs=2).fit(DATA, verbose=False)
    assert capsys.readouterr().err == ""
