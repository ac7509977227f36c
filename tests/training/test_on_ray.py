"""Workers that Ray Train starts on a cluster of three local nodes train what two processes of this machine would."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.executors import Ray
from rankpolicy.rankers.on_workers import fit_on_workers
from rankpolicy.types import RankPolicyError
from tests.ray_cluster import running_cluster
from tests.training.data_parallel_script import DATA, TRAIN, VALID, rankers

pytest.importorskip("pyarrow", reason="Ray Train needs pyarrow")
pytest.importorskip("pandas", reason="Ray Train needs pandas")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster():
    with running_cluster([1, 1, 1]) as made:
        yield made


class Mortal(torch.nn.Module):
    """A network whose second worker is killed in the third epoch, unless the file is there already."""

    def __init__(self, num_features, file):
        super().__init__()
        self.layer, self.file, self.num_steps = torch.nn.Linear(num_features, 1), file, 0

    def forward(self, features):
        self.num_steps += self.training
        if self.num_steps == 12 and os.environ.get("RANK") == "1" and not self.file.exists():
            self.file.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.layer(features).squeeze(-1)


class MakesMortal:
    def __init__(self, file):
        self.file = file

    def __call__(self, num_features):
        torch.manual_seed(0)
        return Mortal(num_features, self.file)


def test_workers_on_ray_train_what_processes_would(cluster):
    (here, valid), (there, _) = rankers()["pg-rank"], rankers()["pg-rank"]
    fit_on_workers(here, TRAIN, valid, workers=2)
    handler = signal.getsignal(signal.SIGINT)
    assert fit_on_workers(there, TRAIN, valid, workers=2, executor=Ray()) is there
    np.testing.assert_array_equal(there.predict(DATA), here.predict(DATA))
    assert there.evals_result_ == here.evals_result_
    assert signal.getsignal(signal.SIGINT) is handler


def test_training_goes_on_when_a_worker_on_ray_is_killed(cluster, tmp_path):
    found = {}
    for name in ("disturbed", "undisturbed"):
        file = tmp_path / "killed"
        assert file.exists() == (name == "undisturbed")
        ranker = rp.PGRank(model=MakesMortal(file), epochs=5, batch_queries=8, learning_rate=0.01)
        checkpoint = tmp_path / f"{name}.checkpoint"
        # What is not disturbed runs without Ray: the test above shows that the bits are the same.
        executor = Ray() if name == "disturbed" else "processes"
        fit_on_workers(ranker, TRAIN, VALID, workers=2, checkpoint=checkpoint, executor=executor)
        found[name] = ranker
    np.testing.assert_array_equal(found["disturbed"].predict(DATA), found["undisturbed"].predict(DATA))
    assert found["disturbed"].evals_result_ == found["undisturbed"].evals_result_


def test_errors_on_ray_have_words(cluster):
    with pytest.raises(RankPolicyError, match="5 workers need 5 cores; this Ray cluster has 3"):
        fit_on_workers(rp.PGRank(), TRAIN, workers=5, executor=Ray())
    amortized = rp.FairPGRank(model="mlp", fairness=rp.fairness.GroupExposure(amortized=True), epochs=1)
    with pytest.raises(RankPolicyError, match="an objective that is a mean over queries"):
        fit_on_workers(amortized, rp.data.make_fair_synthetic(4), workers=2, executor=Ray())
    with pytest.raises(RankPolicyError, match="workers are processes or run on Ray; got executor='threads'"):
        fit_on_workers(rp.PGRank(), TRAIN, workers=2, executor="threads")


def test_the_command_line_trains_on_a_cluster(cluster, tmp_path):
    for name, part in (("train", TRAIN), ("valid", VALID)):
        rp.data.write_letor(part, tmp_path / f"{name}.txt")
    call = "train --method pg-rank --data train.txt --valid valid.txt --set epochs=2 --set model.dropout=0"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    for out, more in (
        ("here", ["--executor", "processes:2"]),
        ("ray", ["--executor", "ray:2", "--address", cluster.address]),
    ):
        command = [sys.executable, "-m", "rankpolicy", *call.split(), *more, "--out", f"{out}.rp"]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
    here, there = (rp.load(tmp_path / f"{name}.rp").predict(DATA) for name in ("here", "ray"))
    np.testing.assert_array_equal(there, here)
