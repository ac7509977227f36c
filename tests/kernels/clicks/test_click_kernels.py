"""The threaded forms of the click kernels, which small logs do not reach; the rest is in contracts/test_click_models.py."""

import numpy as np
import pytest

from rankpolicy.clicks import CLICK_MODELS
from rankpolicy.clicks.log.log_pairs import pairs_of
from rankpolicy.clicks.log.row_counts import counted_keys, cut_at_changes, distinct_rows
from rankpolicy.clicks.models.cascade import CascadeModel
from rankpolicy.clicks.models.fit import first_parameters
from tests.clicks.log.logs import random_log


@pytest.mark.parametrize("name", ["ubm", "dbn"])
def test_threads_change_nothing(name, monkeypatch):
    kind, log = CLICK_MODELS[name], random_log(num_queries=40)
    view = pairs_of(log).view(log)
    parameters, _ = first_parameters(kind, view, dict.fromkeys(kind.axes, (1.0, 1.0)))
    summary = kind.summarise(view)
    assert len(summary.blocks) > 10
    alone = kind.expect_compiled(parameters, summary)
    monkeypatch.setattr("rankpolicy.kernels.compile._ENOUGH_NANOSECONDS", 0)
    threaded = kind.expect_compiled(parameters, summary)
    assert threaded.log_likelihood == pytest.approx(alone.log_likelihood, rel=1e-13)
    for parameter, values in alone.trials.items():
        np.testing.assert_allclose(threaded.trials[parameter], values, rtol=1e-13)


class SameStop(CascadeModel):
    """A cascade model with one probability to stop after any click."""

    name, title, axes = "same-stop", "same stop", {"attraction": ("item",), "stop": (1,)}

    @classmethod
    def after_click(cls, parameters, pairs, positions):
        return 1 - parameters["stop"]

    @classmethod
    def count_moves(cls, parameters, moves, num_pairs):
        stopped = (moves.counts * (1 - moves.went_on)).sum()
        return {"stop": np.array([stopped])}, {"stop": np.array([moves.counts.sum()])}


def test_a_model_may_have_one_value_for_all_clicks():
    log = random_log(num_queries=5)
    view = pairs_of(log).view(log)
    parameters, _ = first_parameters(SameStop, view, dict.fromkeys(SameStop.axes, (1.0, 1.0)))
    wanted, found = (
        SameStop.expect(parameters, view),
        SameStop.expect_compiled(parameters, SameStop.summarise(view)),
    )
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-12)
    for parameter, values in wanted.successes.items():
        np.testing.assert_allclose(found.successes[parameter], values, atol=1e-10)


def test_blocks_never_divide_an_owner():
    owners = np.sort(np.random.default_rng(0).integers(0, 9, 1000))
    cuts = cut_at_changes(owners)
    assert cuts[0] == 0
    assert cuts[-1] == 1000
    assert all(owners[cut - 1] != owners[cut] for cut in cuts[1:-1])
    assert cut_at_changes(np.zeros(5, int)).tolist() == [0, 5]


def test_rows_that_share_a_hash_stay_apart(monkeypatch):
    monkeypatch.setattr("rankpolicy.clicks.log.row_counts._MULTIPLIER", np.uint64(0))
    rows = np.array([[1, 2], [3, 4], [1, 2]])
    first, inverse = distinct_rows(rows)
    assert len(first) == 2
    np.testing.assert_array_equal(rows[first][inverse], rows)


def test_keys_are_counted_alike_when_many_are_possible():
    keys, weights = np.array([5, 2, 5, 900]), np.array([1.0, 2.0, 3.0, 4.0])
    for bound in (901, 10**12):
        found, totals = counted_keys(keys, weights, bound)
        assert (found.tolist(), totals.tolist()) == ([2, 5, 900], [2, 4, 4])
