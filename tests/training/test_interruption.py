"""Ctrl-C in a fit keeps the best state so far and says so."""

import logging
import signal

import numpy as np
import pytest

import rankpolicy as rp
import rankpolicy.training
from rankpolicy.cli.main import run
from rankpolicy.executors import Serial

DATA = rp.make_web_search(30, items_per_query=(5, 10), num_features=8)
FEW = {"progress": False}

RANKERS = {
    "network": rp.ListNet(epochs=50, num_networks=1, model="linear"),
    "trees": rp.LambdaMART(num_trees=50, min_items_in_leaf=2, patience=None),
    "linear": rp.AdaRank(rounds=50),
    "blend": rp.AutoRanker(
        methods=("lambdamart", "regression"),
        method_settings={"lambdamart": {"num_trees": 5}, "regression": {"epochs": 2, "num_networks": 1}},
        feature_gate=False,
        jobs=1,
    ),
}


@pytest.fixture(autouse=True)
def _default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press_at(iteration, *, times=1):
    def callback(progress):
        if progress.iteration == iteration:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    return callback


def raise_at(iteration):
    def callback(progress):
        if progress.iteration == iteration:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("interrupt", [press_at, raise_at])
def test_the_best_state_so_far_is_kept(name, interrupt, tmp_path):
    from sklearn.base import clone

    ranker, iterations = clone(RANKERS[name]), []
    with pytest.warns(
        UserWarning, match="training was interrupted after iteration 2; the ranker is fitted with the best"
    ):
        ranker.fit(DATA, valid=DATA, callbacks=[lambda state: iterations.append(state.iteration), interrupt(2)], **FEW)
    assert iterations == [1, 2]
    assert ranker.interrupted_
    assert np.isfinite(ranker.predict(DATA)).all()
    stopped = clone(RANKERS[name]).fit(DATA, valid=DATA, callbacks=[lambda state: state.iteration == 2], **FEW)
    assert not stopped.interrupted_
    np.testing.assert_array_equal(ranker.predict(DATA), stopped.predict(DATA))
    ranker.save(tmp_path / "model.rp")
    np.testing.assert_array_equal(rp.load(tmp_path / "model.rp").predict(DATA), ranker.predict(DATA))


def test_a_blend_interrupted_before_a_fold_is_done_has_the_members_that_are():
    from sklearn.base import clone

    ranker = clone(RANKERS["blend"])
    with pytest.warns(UserWarning, match="training was interrupted after iteration 1"):
        ranker.fit(DATA, callbacks=[press_at(1)], **FEW)
    assert len(ranker.report_["members"]) == 1
    assert np.isfinite(ranker.predict(DATA)).all()


def test_before_the_first_iteration_and_at_the_second_time_it_aborts():
    class PressAtStart(rp.training.Callback):
        def on_start(self, progress):
            signal.raise_signal(signal.SIGINT)

    ranker = rp.ListNet(epochs=5, num_networks=1, model="linear")
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(DATA, callbacks=[PressAtStart()], **FEW)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(DATA, callbacks=[press_at(1, times=2)], **FEW)
    assert not ranker.is_fitted


def fit_one(task):
    return rp.ListNet(epochs=5, num_networks=1, model="linear").fit(DATA, callbacks=[press_at(2)], **FEW)


def test_one_of_many_fits_leaves_it_to_the_whole_run():
    finished = []
    with pytest.raises(KeyboardInterrupt):
        Serial().map(fit_one, [1, 2], report=lambda number, result: finished.append(number))
    assert finished == []


class PressAtThird(logging.Handler):
    """Presses Ctrl-C when training has logged its third iteration."""

    num_records = 0

    def emit(self, record):
        self.num_records += 1
        if self.num_records == 3:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def _press_at_third_iteration():
    logger, handler = logging.getLogger("rankpolicy.training"), PressAtThird()
    before = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    logger.setLevel(before)


@pytest.mark.usefixtures("_press_at_third_iteration")
@pytest.mark.parametrize("method", ["listnet", "lambdamart"])
def test_the_command_writes_the_model_and_says_that_it_was_interrupted(method, tmp_path, capsys):
    rp.data.write_letor(DATA, tmp_path / "train.txt")
    setting = "epochs=50" if method == "listnet" else "num_trees=50"
    command = ["train", "--method", method, "--data", str(tmp_path / "train.txt"), "--out", str(tmp_path / "m.rp")]
    with pytest.warns(UserWarning, match="training was interrupted after iteration 3"):
        status = run([*command, "--set", setting, "--json"])
    assert status == 130
    output = capsys.readouterr()
    assert output.err.endswith("interrupted.\n")
    assert '"interrupted": true' in output.out
    assert rp.load(tmp_path / "m.rp").best_iteration_ == 3


@pytest.mark.usefixtures("_press_at_third_iteration")
def test_tuning_and_comparing_end_with_one_line(tmp_path, capsys):
    rp.data.write_letor(DATA, tmp_path / "train.txt")
    path, out = str(tmp_path / "train.txt"), str(tmp_path / "tune")
    command = f"tune --method listnet --data {path} --valid {path} --set epochs=50 --num-trials 3 --out {out}"
    status = run([*command.split(), "--executor", "serial"])
    assert status == 130
    assert "Traceback" not in (text := capsys.readouterr().err)
    assert text.endswith("interrupted.\n")
