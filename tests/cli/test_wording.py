"""Errors on the command line advise options, never Python."""

import pytest


def test_features_beyond_those_of_the_model(refused, folder, tmp_path):
    (tmp_path / "wide.txt").write_text("1 qid:1 20:1\n0 qid:1 3:1\n")
    for verb in (["evaluate"], ["predict", "--out", tmp_path / "o.txt"]):
        answer = refused(*verb[:1], folder / "model.rp", "--data", tmp_path / "wide.txt", *verb[1:])
        assert "leave them out of the file" in answer
        assert "Raise num_features" not in answer


def test_a_click_that_is_no_number_is_shown_as_it_is(refused, tmp_path):
    (tmp_path / "log.csv").write_text("session,query,item,position,clicked\ns,q,a,1,yes\n")
    answer = refused("clicks", "fit", tmp_path / "log.csv")
    assert "clicked='yes'" in answer
    assert "--lenient" in answer


def test_a_log_without_rows(refused, tmp_path):
    (tmp_path / "log.csv").write_text("session,query,item,position,clicked\n")
    assert "at least one row" in refused("clicks", "fit", tmp_path / "log.csv")
    assert "at least one row" in refused("clicks", "bias", tmp_path / "log.csv")


def test_a_reward_that_needs_samples(refused, folder, tmp_path):
    call = ["train", "--data", folder / "train.txt", "--out", tmp_path / "m.rp"]
    answer = refused(*call, "--method", "pg-rank", "--set", "reward=ap", "--set", "estimator=exact")
    assert "these do: gumbel, reinforce." in answer


def test_trees_with_too_many_leaves_are_refused_before_lightgbm_sees_them(refused, folder, tmp_path):
    call = ["train", "--data", folder / "train.txt", "--out", tmp_path / "m.rp", "--method", "lambdamart"]
    assert "num_leaves must be" in refused(*call, "--set", "num_leaves=10000000")


@pytest.mark.parametrize("steps", ["9" * 30, "0", "x"])
def test_steps_that_cannot_be_simulated(refused, steps):
    assert "--steps" in refused("simulate", "--steps", steps)
