"""Checkpoints in files: other data, other files in their place, places that cannot be written."""

import os
import warnings
from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp

DATA = rp.make_web_search(24, items_per_query=(3, 6), num_features=8, random_state=0)
TRAIN, VALID = DATA[:16], DATA[16:]
SETTINGS = {"model": rp.models.MLP(hidden=(4,)), "num_networks": 1}


def ranker(epochs):
    return rp.PGRank(epochs=epochs, **SETTINGS)


@pytest.mark.parametrize("changed", ["features", "labels", "validation"])
def test_a_checkpoint_of_other_data_is_refused(tmp_path, changed):
    ranker(1).fit(TRAIN, valid=VALID, checkpoint=tmp_path / "c")
    other = {
        "features": (replace(TRAIN, features_by_query=TRAIN.features_by_query + np.float32(1)), VALID),
        "labels": (replace(TRAIN, labels_by_query=TRAIN.labels_by_query[::-1].copy()), VALID),
        "validation": (TRAIN, VALID[:-1]),
    }[changed]
    with pytest.raises(rp.RankPolicyError, match="made with other training or validation data"):
        ranker(2).fit(other[0], valid=other[1], checkpoint=tmp_path / "c", resume=True)


def test_the_same_data_read_again_is_the_same(tmp_path):
    rp.data.write_letor(TRAIN, tmp_path / "train.txt")
    ranker(1).fit(rp.data.read_letor(tmp_path / "train.txt"), checkpoint=tmp_path / "c")
    resumed = ranker(2).fit(rp.data.read_letor(tmp_path / "train.txt"), checkpoint=tmp_path / "c", resume=True)
    assert resumed.best_iteration_ == 2


def test_nothing_to_resume_is_said_and_training_starts(tmp_path):
    with pytest.warns(UserWarning, match="nothing to resume: .* does not exist"):
        ranker(1).fit(TRAIN, checkpoint=tmp_path / "c", resume=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker(2).fit(TRAIN, checkpoint=tmp_path / "c", resume=True)


def test_another_file_is_not_replaced(tmp_path):
    (tmp_path / "notes").write_text("of years")
    with pytest.raises(rp.RankPolicyError, match="is no checkpoint"):
        ranker(1).fit(TRAIN, checkpoint=tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "of years"


def test_a_full_disk_is_an_error_that_says_so():
    with pytest.raises(rp.RankPolicyError, match="cannot write /dev/full: No space left"):
        ranker(1).fit(TRAIN, checkpoint="/dev/full")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(rp.RankPolicyError, match=r"checkpoint must be in a folder|must be in a directory"):
        ranker(1).fit(TRAIN, checkpoint=tmp_path / "file" / "c")


@pytest.mark.skipif(os.getuid() == 0, reason="an administrator may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused_before_training(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(rp.RankPolicyError, match="checkpoint must be writable"):
        ranker(1).fit(TRAIN, checkpoint=tmp_path / "c")


def test_no_temporary_file_has_a_name_that_two_runs_share(tmp_path, monkeypatch):
    ranker(1).fit(TRAIN, checkpoint=tmp_path / "c")
    assert os.listdir(tmp_path) == ["c"]
    (tmp_path / "c.part").mkdir()  # where a fixed temporary name would have been
    ranker(1).fit(TRAIN, checkpoint=tmp_path / "c")
