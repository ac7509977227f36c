"""Objectives that draw rankings, on a GPU: their steps are captured without a look at the device, and train as eager ones."""

import numpy as np
import pytest
import torch

from rankpolicy.objectives import Hybrid, PolicyGradient
from rankpolicy.training import device_batches, fit_networks
from tests.training.test_ensemble import new_fit, ranking_scores, tensors

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize(
    ("estimator", "reward"),
    [("gumbel", "ndcg@5"), ("gumbel", "mean(ap, rr)"), ("pl_rank", "ndcg@5"), ("pl_rank", "dcg"), ("reinforce", "ap")],
)
def test_sampled_steps_are_captured(monkeypatch, caplog, estimator, reward):
    train = tensors(device="cuda")

    def fitted():
        fit = new_fit(train, objective=PolicyGradient(estimator=estimator, reward=reward, num_samples=16), epochs=6)
        (state,) = fit_networks([fit])
        return fit, state

    caplog.set_level("INFO", "rankpolicy.training")
    captured, state = fitted()
    assert "without a CUDA graph" not in caplog.text
    assert state.reports[-1] > state.reports[0]
    monkeypatch.setattr(device_batches.DeviceBatches, "capture", lambda *_: None)
    eager, same = fitted()
    np.testing.assert_allclose(state.reports, same.reports, rtol=1e-3)
    np.testing.assert_allclose(ranking_scores(captured), ranking_scores(eager), rtol=0, atol=1e-2)


@pytest.mark.parametrize(
    "settings", [{"gamma": 0.5}, {"gamma": 1.0, "epsilon": "decaying", "control": "leave_one_out"}, {"gamma": 0.0}]
)
def test_hybrid(settings):
    train = tensors(device="cuda")

    def fitted():
        fit = new_fit(train, objective=Hybrid(reward="mean(ap, ndcg@10)", **settings), epochs=8)
        (state,) = fit_networks([fit])
        return fit, state

    (one, state), (other, same) = fitted(), fitted()
    assert state.reports[-1] > state.reports[0]
    np.testing.assert_allclose(state.reports, same.reports, rtol=1e-4)
    np.testing.assert_allclose(ranking_scores(one), ranking_scores(other), rtol=0, atol=1e-3)
    assert set(state.parts) >= {"L_rl", "L_sl"}
