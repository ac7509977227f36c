"""Progress, logging, callbacks and trackers: what is heard of training while it goes on."""

import io
import logging
import subprocess
import sys
import types

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.rankers import RANKERS
from rankpolicy.training import Callback, MLflow, TensorBoard, WeightsAndBiases, progress

DATA = rp.make_web_search(30, random_state=1)
TRAIN, VALID = DATA[:20], DATA[20:]
ITERATIVE = {
    "pg-rank": {"epochs": 4, "num_networks": 1},
    "listnet": {"epochs": 4},
    "fair-pg-rank": {"epochs": 4, "fairness": "individual", "model": "mlp"},
    "lambdamart": {"num_trees": 4},
    "boosted-policy": {"num_trees": 4},
    "coordinate-ascent": {"restarts": 2, "max_passes": 2, "tolerance": 0.0},
    "adarank": {"rounds": 4},
}


class Recorder(Callback):
    def __init__(self, stop_at=None):
        self.calls, self.stop_at = [], stop_at

    def on_start(self, state):
        self.calls.append(("start", state.iteration, dict(state.metrics)))

    def on_iteration(self, state):
        self.calls.append(("iteration", state.iteration, dict(state.metrics)))
        return state.iteration == self.stop_at

    def on_end(self, state):
        self.calls.append(("end", state.iteration, dict(state.metrics)))


@pytest.mark.parametrize("name", ITERATIVE)
def test_callbacks_follow_training_and_can_stop_it(name):
    recorder, seen = Recorder(), []
    ranker = RANKERS[name](**ITERATIVE[name]).fit(TRAIN, valid=VALID, callbacks=[recorder, seen.append])
    kinds = [kind for kind, *_ in recorder.calls]
    assert kinds == ["start", *["iteration"] * len(seen), "end"]
    assert [state.iteration for state in seen] == list(range(1, len(seen) + 1))
    ((metric, curve),) = ranker.evals_result_["valid_0"].items()
    assert [state.metrics[f"validation {metric}"] for state in seen] == curve
    assert seen[0].ranker == type(ranker).__name__
    assert seen[0].settings["random_state"] == 0
    stopped = RANKERS[name](**ITERATIVE[name]).fit(TRAIN, valid=VALID, callbacks=[Recorder(stop_at=2)])
    assert len(stopped.evals_result_["valid_0"][metric]) == 2
    assert np.isfinite(stopped.predict(VALID)).all()


def test_a_callback_can_end_an_epoch_between_its_steps():
    class AfterOneStep(Callback):
        num_asked = 0

        def is_over(self):
            self.num_asked += 1
            return True

    callback = AfterOneStep()
    settings = {"learning_rate": 1e-30, "num_networks": 1, "random_state": 3}  # weights stay, so the reward does
    cut = rp.PGRank(epochs=2, batch_queries=5, **settings).fit(TRAIN, callbacks=[callback])
    whole = rp.PGRank(epochs=1, batch_queries=20, **settings).fit(TRAIN)
    assert callback.num_asked == 2  # of eight steps
    (rewards,), ((reward,),) = cut.evals_result_["training"].values(), whole.evals_result_["training"].values()
    assert rewards[0] != rewards[1]  # different queries
    assert rewards == pytest.approx([reward, reward], abs=0.3)  # means over the queries that were seen


def test_trees_report_without_validation_data():
    seen = []
    rp.LambdaMART(num_trees=3).fit(TRAIN, callbacks=[seen.append])
    assert [state.iteration for state in seen] == [1, 2, 3]
    stopped = rp.LambdaMART(num_trees=30).fit(TRAIN, callbacks=[lambda state: state.iteration == 2])
    assert stopped.best_iteration_ == 2
    assert stopped._booster.current_iteration() == 2


def test_the_end_is_told_when_training_fails():
    recorder = Recorder()

    def fail(state):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        rp.ListNet(epochs=3).fit(TRAIN, callbacks=[recorder, fail])
    assert [kind for kind, *_ in recorder.calls] == ["start", "iteration", "end"]


def test_wrong_callbacks_and_verbosity_are_named():
    for arguments, message in (
        ({"callbacks": 3}, "callbacks must be a list"),
        ({"callbacks": Recorder()}, "callbacks must be a list"),
        ({"callbacks": [3]}, "must be functions or Callback objects; got 3"),
        ({"callbacks": [Recorder]}, r"got the class Recorder\. Write Recorder\(\)"),
        ({"verbose": -1}, "verbose must be True, False or a number"),
        ({"verbose": "yes"}, "verbose must be True, False or a number"),
        ({"verbose": True, "progress": False}, "give progress or verbose, not both"),
    ):
        with pytest.raises(rp.RankPolicyError, match=message):
            rp.ListNet(epochs=1).fit(TRAIN, **arguments)


@pytest.mark.parametrize("name", ["listnet", "lambdamart", "adarank", "rank-svm", "fair-pg-rank"])
def test_several_validation_sets_have_curves_and_the_last_decides(name):
    settings = ITERATIVE.get(name, {})
    by_name = RANKERS[name](**settings).fit(
        TRAIN,
        eval_set=[(TRAIN.features, TRAIN.labels), (VALID.features, VALID.labels)],
        eval_group=[TRAIN.sizes, VALID.sizes],
        eval_names=["seen", "held out"],
    )
    alone = RANKERS[name](**settings).fit(TRAIN, valid=VALID)
    assert by_name.evals_result_["held out"] == alone.evals_result_["valid_0"]
    assert by_name.best_score_ == alone.best_score_
    np.testing.assert_array_equal(by_name.predict(VALID), alone.predict(VALID))
    unnamed = RANKERS[name](**settings).fit(
        TRAIN,
        eval_set=[(TRAIN.features, TRAIN.labels), (VALID.features, VALID.labels)],
        eval_qid=[TRAIN.query_of_item, VALID.query_of_item],
    )
    assert {"valid_0", "valid_1"} <= set(unnamed.evals_result_)
    assert unnamed.evals_result_["valid_0"] == by_name.evals_result_["seen"]
    (curve,) = by_name.evals_result_["seen"].values()
    if name in ("listnet", "lambdamart"):
        assert len(curve) == len(next(iter(alone.evals_result_["valid_0"].values())))


def test_validation_sets_without_queries_or_with_wrong_names_are_named():
    pairs = [(TRAIN.features, TRAIN.labels), (VALID.features, VALID.labels)]
    sizes = [TRAIN.sizes, VALID.sizes]
    for arguments, message in (
        ({"eval_set": pairs, "eval_group": sizes[:1]}, "eval_set has 2 pairs, so eval_qid or eval_group must have 2"),
        ({"eval_set": pairs, "eval_group": sizes, "eval_names": ["a"]}, "one for each of 2 validation sets"),
        ({"eval_set": pairs, "eval_group": sizes, "eval_names": ["a", "a"]}, "must differ from one another"),
        ({"eval_set": pairs, "eval_group": sizes, "eval_names": ["training", "b"]}, "and from 'training'"),
        ({"eval_names": ["a"]}, "one for each of 0 validation sets"),
    ):
        with pytest.raises(rp.RankPolicyError, match=message):
            rp.ListNet(epochs=1).fit(TRAIN, **arguments)
    named = rp.ListNet(epochs=1).fit(TRAIN, valid=VALID, eval_names=["held out"])
    assert list(named.evals_result_) == ["training", "held out"]


def test_curves_of_all_validation_sets_survive_a_checkpoint(tmp_path):
    arguments = {
        "eval_set": [(TRAIN.features, TRAIN.labels), (VALID.features, VALID.labels)],
        "eval_group": [TRAIN.sizes, VALID.sizes],
    }
    whole = rp.ListNet(epochs=4).fit(TRAIN, **arguments)
    path = tmp_path / "state"
    rp.ListNet(epochs=2).fit(TRAIN, checkpoint=path, **arguments)
    resumed = rp.ListNet(epochs=4).fit(TRAIN, checkpoint=path, resume=True, **arguments)
    assert resumed.evals_result_ == whole.evals_result_


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes two seconds forward whenever it is read."""
    now = [0.0]

    def monotonic():
        now[0] += 2.0
        return now[0]

    monkeypatch.setattr(progress.time, "monotonic", monotonic)


def stderr_of(monkeypatch, **arguments):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    rp.ListNet(epochs=10).fit(TRAIN, **arguments)
    return stream.getvalue().splitlines()


def test_outside_a_terminal_there_is_a_line_every_few_seconds(monkeypatch, clock):
    lines = stderr_of(monkeypatch)
    assert lines[0].startswith("ListNet 3/10  loss ")
    assert [line.split()[1] for line in lines] == ["3/10", "6/10", "9/10", "10/10"]
    assert lines[-1].endswith(" s")
    assert stderr_of(monkeypatch, progress=False) == []
    assert stderr_of(monkeypatch, verbose=False) == []


def test_short_training_says_nothing_and_verbose_says_every_nth(monkeypatch):
    assert stderr_of(monkeypatch) == []
    assert [line.split()[1] for line in stderr_of(monkeypatch, verbose=5)] == ["5/10", "10/10", "10/10"]


def test_lines_go_to_a_logger_where_one_listens(monkeypatch, clock, caplog):
    with caplog.at_level(logging.INFO, logger="rankpolicy"):
        assert stderr_of(monkeypatch) == []
    assert [record.name for record in caplog.records] == ["rankpolicy.training"] * 4
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="rankpolicy.training"):
        rp.LambdaMART(num_trees=3).fit(TRAIN, valid=VALID, progress=False)
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
    assert [line.split()[:2] for line in lines] == [["LambdaMART", f"{tree}/3"] for tree in (1, 2, 3)]
    assert "validation ndcg@10" in lines[0]


def test_trackers_import_nothing_until_training_starts():
    code = """
import sys
from rankpolicy.training import MLflow, TensorBoard, WeightsAndBiases
trackers = [MLflow(), TensorBoard(), WeightsAndBiases()]
assert not {"mlflow", "tensorboard", "wandb"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("tracker", "package"), [(MLflow, "mlflow"), (TensorBoard, "tensorboard"), (WeightsAndBiases, "wandb")]
)
def test_a_missing_tracker_is_named(tracker, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(rp.MissingDependencyError, match=f"needs {package}: pip install {package}"):
        rp.ListNet(epochs=1).fit(TRAIN, callbacks=[tracker()])


def test_tensorboard_gets_scalars(monkeypatch, tmp_path):
    written = []

    class SummaryWriter:
        def __init__(self, log_dir):
            written.append(log_dir)

        def add_scalar(self, name, value, step):
            written.append((name, value, step))

        def close(self):
            written.append("closed")

    monkeypatch.setitem(sys.modules, "tensorboard", types.ModuleType("tensorboard"))
    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    ranker = rp.ListNet(epochs=2).fit(TRAIN, valid=VALID, callbacks=[TensorBoard(tmp_path)])
    curve = ranker.evals_result_["valid_0"]["ndcg@10"]
    assert written[0] == str(tmp_path)
    assert ("validation_ndcg_10", curve[1], 2) in written
    assert written[-1] == "closed"


@pytest.mark.parametrize("is_active", [False, True])
def test_mlflow_gets_settings_and_metrics(monkeypatch, is_active):
    calls = []
    mlflow = types.ModuleType("mlflow")
    mlflow.active_run = lambda: "run" if is_active else None
    mlflow.start_run = lambda run_name: calls.append(("start", run_name))
    mlflow.end_run = lambda: calls.append(("end",))
    mlflow.log_params = lambda params: calls.append(("params", params))
    mlflow.log_metrics = lambda metrics, step: calls.append(("metrics", metrics, step))
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    rp.ListNet(epochs=2).fit(TRAIN, callbacks=[MLflow("mine")])
    kinds = [call[0] for call in calls]
    assert kinds == (
        ["params", "metrics", "metrics"] if is_active else ["start", "params", "metrics", "metrics", "end"]
    )
    params = next(call[1] for call in calls if call[0] == "params")
    assert (params["ranker"], params["epochs"]) == ("ListNet", 2)


def test_weights_and_biases_gets_settings_and_metrics(monkeypatch):
    calls = []

    class Run:
        def __init__(self):
            self.config = types.SimpleNamespace(update=lambda values, **_: calls.append(("config", values)))

        def log(self, metrics, step):
            calls.append(("log", metrics, step))

        def finish(self):
            calls.append(("finish",))

    wandb = types.ModuleType("wandb")
    wandb.run = None
    wandb.init = lambda project, name: calls.append(("init", project, name)) or Run()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    rp.ListNet(epochs=2).fit(TRAIN, callbacks=[WeightsAndBiases("ranking")])
    assert [call[0] for call in calls] == ["init", "config", "log", "log", "finish"]
