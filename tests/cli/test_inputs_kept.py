"""Output never replaces its own input, a link or a device, whatever the verb."""

import os
import shutil
import stat

import pytest

from tests.cli.conftest import SMALL


@pytest.fixture
def copied(folder, tmp_path):
    """A folder of one's own with train.txt, vali.txt, test.txt and model.rp."""
    for name in ("train.txt", "vali.txt", "test.txt", "model.rp"):
        shutil.copy(folder / name, tmp_path / name)
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_predictions_do_not_replace_the_data_or_the_model(refused, copied, monkeypatch):
    before = contents(copied)
    call = ["predict", copied / "model.rp", "--data", copied / "test.txt", "--out"]
    assert "--out must not be a file that is read" in refused(*call, copied / "test.txt")
    monkeypatch.chdir(copied)
    assert "is --data" in refused(*call, "../" + copied.name + "/test.txt")
    (copied / "link.txt").symlink_to(copied / "test.txt")
    assert "is --data" in refused(*call, copied / "link.txt")
    os.link(copied / "test.txt", copied / "hard.txt")
    assert "is --data" in refused(*call, copied / "hard.txt")
    assert {name: contents(copied)[name] for name in before} == before


@pytest.mark.parametrize("option", ["--out", "--checkpoint"])
@pytest.mark.parametrize("name", ["train.txt", "vali.txt", "run.toml"])
def test_training_does_not_replace_what_it_reads(refused, copied, option, name):
    (copied / "run.toml").write_text('method = "regression"')
    before = contents(copied)
    call = [
        "train",
        "--config",
        copied / "run.toml",
        "--data",
        copied / "train.txt",
        "--valid",
        copied / "vali.txt",
        *SMALL,
    ]
    outputs = {"--out": copied / "model.rp", "--checkpoint": copied / "state.ckpt"} | {option: copied / name}
    assert f"{option} must not be a file that is read" in refused(
        *call, *(word for pair in outputs.items() for word in pair)
    )
    assert contents(copied) == before


def test_model_and_checkpoint_are_two_files(refused, copied):
    call = ["train", "--method", "pg-rank", "--data", copied / "train.txt", *SMALL]
    answer = refused(*call, "--out", copied / "new.rp", "--checkpoint", copied / "new.rp")
    assert "--checkpoint must not be" in answer


def test_a_checkpoint_does_not_replace_a_file_of_another_kind(refused, copied):
    (copied / "notes.txt").write_text("of years")
    call = ["train", "--method", "pg-rank", "--data", copied / "train.txt", *SMALL, "--out", copied / "new.rp"]
    assert "is no checkpoint" in refused(*call, "--checkpoint", copied / "notes.txt")
    assert (copied / "notes.txt").read_text() == "of years"


def test_metrics_per_query_do_not_replace_the_data(rankpolicy, refused, copied):
    assert (
        rankpolicy("predict", copied / "model.rp", "--data", copied / "test.txt", "--out", copied / "x.csv").status == 0
    )
    shutil.copy(copied / "test.txt", copied / "test.csv")
    answer = refused("evaluate", copied / "model.rp", "--data", copied / "test.csv", "--per-query", copied / "test.csv")
    assert "--per-query must not be a file that is read" in answer


def test_a_directory_of_results_does_not_replace_the_log_in_it(refused, tmp_path):
    log = tmp_path / "propensities.csv"
    rows = [(f"s{s}", "q", i, p, (s + p) % 2) for s in range(12) for p, i in enumerate("ab" if s % 2 else "ba", 1)]
    log.write_text("session,query,item,position,clicked\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    before = log.read_bytes()
    answer = refused("clicks", "bias", log, "--method", "all-pairs", "--resamples", 0, "--out", tmp_path)
    assert "--out must be a directory without the input" in answer
    assert log.read_bytes() == before


def test_a_link_stays_a_link_and_a_device_a_device(rankpolicy, copied):
    (copied / "real").mkdir()
    (copied / "scores.txt").symlink_to(copied / "real" / "scores.txt")
    (copied / "null.txt").symlink_to("/dev/null")
    for name in ("scores.txt", "null.txt"):
        out = copied / name
        assert rankpolicy("predict", copied / "model.rp", "--data", copied / "test.txt", "--out", out).status == 0
        assert out.is_symlink()
    assert len((copied / "real" / "scores.txt").read_text().splitlines()) > 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_model_may_go_to_a_device_without_a_record_beside_it(rankpolicy, copied):
    (copied / "null.rp").symlink_to("/dev/null")
    call = ["train", "--method", "regression", "--data", copied / "train.txt", "--set", "epochs=1", "--out"]
    result = rankpolicy(*call, copied / "null.rp")
    assert result.status == 0, result.stderr
    assert not (copied / "null.run.json").exists()
