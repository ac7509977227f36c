"""Click models, comparison tables, regret and trade-off curves are the same bits whatever the executor and the number of workers."""

import numpy as np
import pytest

from rankpolicy.clicks import fit_click_model
from rankpolicy.clicks.log.log_pairs import pairs_of
from rankpolicy.clicks.models import shards
from rankpolicy.clicks.models.members import CLICK_MODELS
from rankpolicy.executors import Processes, Serial, Threads
from rankpolicy.experiments import fit_best
from rankpolicy.rankers import LambdaMART, ListNet
from tests.executors.same_results import FOLD, LOG, WORK


@pytest.fixture(scope="module")
def workers():
    with Processes(2) as two, Processes(4) as four:
        yield {"serial": Serial(), "threads": Threads(3), "two processes": two, "four processes": four}


@pytest.mark.parametrize("name", WORK)
def test_executors_give_the_same_bits(name, workers):
    expected = WORK[name](None)
    for executor in workers.values():
        assert WORK[name](executor) == expected, executor


@pytest.mark.parametrize(
    ("ranker_class", "settings"),
    [(LambdaMART, {"num_trees": 5}), (ListNet, {"epochs": 2, "num_networks": 1})],
)
def test_the_choice_of_settings_does_not_depend_on_workers(ranker_class, settings, workers):
    first, second = (
        fit_best(ranker_class, settings, FOLD.train, FOLD.valid, executor=executor)
        for executor in (None, workers["two processes"])
    )
    assert len(first.tried) > 1
    assert first.tried == second.tried
    assert first.settings == second.settings
    np.testing.assert_array_equal(first.ranker.predict(FOLD.test), second.ranker.predict(FOLD.test))


@pytest.mark.parametrize("name", [name for name, kind in CLICK_MODELS.items() if kind.uses_em])
def test_shards_add_up_to_the_whole_log(name, monkeypatch):
    whole = fit_click_model(name, LOG, iterations=4)
    monkeypatch.setattr(shards, "SESSIONS_OF_A_SHARD", 60)
    view = pairs_of(LOG).view(LOG)
    parts = shards.shards_of(CLICK_MODELS[name], view)
    assert len(parts) > 4
    assert sum(len(part.view.queries) for part in parts) == len(view.queries)
    cut = fit_click_model(name, LOG, iterations=4)
    for parameter, values in whole.parameters.items():
        np.testing.assert_allclose(cut.parameters[parameter], values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(cut.objectives, whole.objectives, rtol=1e-12)
