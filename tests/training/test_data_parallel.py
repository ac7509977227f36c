"""Several processes train the network that one process would, also when one of them is killed."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers import on_workers
from rankpolicy.rankers.on_workers import fit_on_workers
from rankpolicy.training import data_parallel
from rankpolicy.training.data_parallel import LostWorkerError
from rankpolicy.training.worker_processes import run_workers
from rankpolicy.types import RankPolicyError
from tests.training.data_parallel_script import DATA, TRAIN, VALID, rankers, reports

ROOT = Path(__file__).parents[2]
SCRIPT = [sys.executable, "-m", "tests.training.data_parallel_script"]
PATHS = os.pathsep.join([str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What two workers trained without being disturbed."""
    folder = tmp_path_factory.mktemp("workers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PATHS)
        assert run_workers([*SCRIPT, str(folder)], 2) == 0
    return folder


@pytest.mark.parametrize("name", rankers())
def test_two_workers_train_what_one_process_would(name, trained):
    ranker, valid = rankers()[name]
    ranker.fit(TRAIN, valid=valid, progress=False)
    found = np.load(trained / f"{name}.npz")
    scores = np.array([found["scores"], ranker.predict(DATA)])
    if name != "regression":
        # A constant for all items has no gradient but for rounding, which Adam scales up.
        scores -= scores.mean(1, keepdims=True)
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(found["training"], reports(ranker), rtol=1e-5)


def test_training_goes_on_when_a_worker_is_killed(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PATHS)
    lines = []
    assert run_workers([*SCRIPT, str(tmp_path), "die"], 2, report=lines.append) == 0
    assert lines == ["worker 1 ended by SIGKILL; all 2 start again (1 of 3)."]
    found, expected = np.load(tmp_path / "drawn.npz"), np.load(trained / "drawn.npz")
    np.testing.assert_array_equal(found["scores"], expected["scores"])
    np.testing.assert_array_equal(found["training"], expected["training"])


def test_a_worker_that_is_always_lost():
    with pytest.raises(RankPolicyError, match="worker 0 of 2 ended with status 9, and so did 1 starts before"):
        run_workers([sys.executable, "-c", "import os; os._exit(9)"], 2, retries=1)


def test_torchrun_and_the_option_workers_train_the_same_model(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PATHS)
    for name, part in (("train", TRAIN), ("valid", VALID)):
        rp.data.write_letor(part, tmp_path / f"{name}.txt")
    call = [
        "-m",
        "rankpolicy",
        "train",
        "--method",
        "pg-rank",
        "--data",
        "train.txt",
        "--valid",
        "valid.txt",
        "--set",
        "epochs=2",
        "--set",
        "model.dropout=0",
    ]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    for out, before, after in (("one", [], []), ("two", [], ["--executor", "processes:2"]), ("torchrun", torchrun, [])):
        command = [sys.executable, *before, *call, "--out", f"{out}.rp", *after]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.count("model  ") == 1  # the first worker speaks for all
    one, two, other = (rp.load(tmp_path / f"{name}.rp").predict(DATA) for name in ("one", "two", "torchrun"))
    np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(two, other)


def test_one_call_in_python(trained):
    ranker, _ = rankers()["regression"]
    assert fit_on_workers(ranker, TRAIN, workers=2) is ranker
    np.testing.assert_array_equal(ranker.predict(DATA), np.load(trained / "regression.npz")["scores"])
    amortized = rp.FairPGRank(model="mlp", fairness=rp.fairness.GroupExposure(amortized=True), epochs=1)
    with pytest.raises(RankPolicyError, match="an objective that is a mean over queries"):
        fit_on_workers(amortized, rp.data.make_fair_synthetic(4), workers=2)


def test_without_torchrun_there_is_one_worker():
    with data_parallel() as worker:
        assert (worker.rank, worker.num_workers, worker.is_first) == (0, 1, True)


def test_the_error_of_a_worker_comes_before_that_of_one_that_lost_it(monkeypatch):
    errors = iter([RankPolicyError("the disk is full."), LostWorkerError("another worker was lost.")])

    def fit(*_, **__):
        raise next(errors)

    def run_both(command, num_workers, **_):
        monkeypatch.setattr(rp.PGRank, "fit", fit)
        return max(on_workers._fit_here(Path(command[-1])) for _ in range(num_workers))

    monkeypatch.setattr(on_workers, "run_workers", run_both)
    with pytest.raises(RankPolicyError, match="the disk is full"):
        fit_on_workers(rp.PGRank(), TRAIN, workers=2)


def test_retries_are_a_whole_number():
    with pytest.raises(RankPolicyError, match="retries must be a whole number, 0 or more; got -1"):
        fit_on_workers(rp.PGRank(), TRAIN, workers=2, retries=-1)
