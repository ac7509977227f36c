"""Training steps of kernels only, against autograd through the same networks on the same batches."""

import numpy as np
import pytest
import torch

from rankpolicy.data.batches import RaggedTensors
from rankpolicy.objectives import FairPolicyGradient, PolicyGradient
from rankpolicy.training import ensemble, fit_networks, kernel_networks
from tests.training.test_ensemble import new_fit, ranking_scores


@pytest.fixture
def steps_of_a_device(device, monkeypatch):
    """In the interpreter: the path that data on a GPU take, with kernels for networks."""
    monkeypatch.setattr(ensemble, "stays_on_device", lambda fit: True)
    if device.type == "cpu":
        monkeypatch.setattr(kernel_networks, "on_gpu", lambda array: array.element_size() <= 4)
    return device


def small_data(device):
    generator = torch.Generator().manual_seed(0)
    offsets = np.array([0, 3, 7, 9, 13, 16, 20, 23, 27, 30])
    labels = torch.randint(3, (30,), generator=generator).float()
    features = torch.randn(30, 5, generator=generator) + labels[:, None]
    groups = torch.arange(30) % 2
    return RaggedTensors(features.to(device), labels.to(device), offsets, groups=groups.to(device))


@pytest.mark.parametrize("objective", ["exact", "entropy", "fair"])
def test_kernels_train_as_autograd_does(steps_of_a_device, monkeypatch, objective):
    train = small_data(steps_of_a_device)
    objectives = {
        "exact": [PolicyGradient(estimator="exact")] * 2,
        "entropy": [PolicyGradient(estimator="exact", entropy=entropy) for entropy in (0.0, 0.3)],
        "fair": [FairPolicyGradient(strength=strength, num_groups=2) for strength in (1.0, 20.0)],
    }[objective]
    num_seeds = 2 if objective == "exact" else 1

    def make():
        return [
            new_fit(train, seed=seed, rate=1e-2 / (1 + place), decay=0.1, objective=own, epochs=2)
            for seed in range(num_seeds)
            for place, own in enumerate(objectives)
        ]

    by_kernel = make()
    states = fit_networks(by_kernel)
    monkeypatch.setattr(kernel_networks.KernelNetworks, "serve", lambda *_: False)
    expected = make()
    for state, reference in zip(states, fit_networks(expected), strict=True):
        np.testing.assert_allclose(state.reports, reference.reports, rtol=1e-4)
    for one, other in zip(by_kernel, expected, strict=True):
        np.testing.assert_allclose(ranking_scores(one), ranking_scores(other), rtol=0, atol=2e-3)
    assert not np.allclose(ranking_scores(by_kernel[0]), ranking_scores(by_kernel[1]), atol=2e-3)
