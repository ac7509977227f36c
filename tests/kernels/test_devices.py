"""Where click models and simulated bandits are computed."""

import logging
from functools import partial

import pytest
import torch

from rankpolicy.clicks import fit_click_model, log_from_lists
from rankpolicy.kernels import devices
from rankpolicy.kernels.devices import takes_cuda
from rankpolicy.simulation import dcm_user, simulate, stationary
from rankpolicy.types import RankPolicyError

LOG = log_from_lists(["a", "a"], [["x", "y"], ["y", "x"]], [[1, 0], [0, 1]])
PROBLEM = stationary(dcm_user([0.5, 0.2], [0.5]), 1)


@pytest.fixture
def with_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (3_000_000_000, 8_000_000_000))
    monkeypatch.setattr(devices, "HAS_TRITON", True)
    monkeypatch.setattr(devices, "triton_is_on", lambda: True)


def test_the_gpu_is_taken_where_it_is_asked_for_or_pays(with_cuda):
    assert not takes_cuda("cpu", pays=True, what="it")
    assert takes_cuda("cuda", pays=False, what="it")
    assert [takes_cuda("auto", pays=pays, what="it") for pays in (True, False)] == [True, False]


def test_the_log_says_where_it_went(with_cuda, caplog, monkeypatch):
    with caplog.at_level(logging.INFO, logger="rankpolicy.devices"):
        takes_cuda("auto", pays=True, what="EM of pbm")
        takes_cuda("auto", pays=False, what="EM of pbm")
        monkeypatch.setattr(devices, "triton_is_on", lambda: False)
        takes_cuda("auto", pays=True, what="EM of pbm")
    assert [record.getMessage() for record in caplog.records] == [
        "EM of pbm on CUDA",
        "EM of pbm on the CPU: too small to pay on a GPU",
        "EM of pbm on the CPU: the GPU path needs the package triton",
    ]


def test_what_does_not_fit_stays_on_the_cpu(with_cuda):
    assert takes_cuda("auto", pays=True, what="EM of pbm", num_bytes=2_000_000_000)
    assert not takes_cuda("auto", pays=True, what="EM of pbm", num_bytes=4_000_000_000)
    with pytest.raises(RankPolicyError, match=r"about 4\.0 GB for EM of pbm, of which 3\.0 GB are free"):
        takes_cuda("cuda", pays=True, what="EM of pbm", num_bytes=4_000_000_000)


def test_what_is_missing_is_named(with_cuda, monkeypatch):
    monkeypatch.setattr(devices, "triton_is_on", lambda: False)
    with pytest.raises(RankPolicyError, match="RANKPOLICY_TRITON=0 turns off"):
        takes_cuda("cuda", pays=True, what="it")
    monkeypatch.setattr(devices, "HAS_TRITON", False)
    with pytest.raises(RankPolicyError, match="pip install triton"):
        takes_cuda("cuda", pays=True, what="it")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a CUDA device")
@pytest.mark.parametrize(
    "run",
    [
        partial(fit_click_model, "pbm", LOG),
        partial(simulate, ["random"], PROBLEM, num_steps=1, num_runs=1),
    ],
)
def test_without_a_gpu(run):
    assert run(device="auto") is not None
    with pytest.raises(RankPolicyError, match="needs a CUDA device"):
        run(device="cuda")
    with pytest.raises(RankPolicyError, match=r"Unknown device 'cudo'\. Did you mean 'cuda'"):
        run(device="cudo")
