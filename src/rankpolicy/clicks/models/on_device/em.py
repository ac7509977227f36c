"""EM with everything on the device; one number per iteration comes back, the objective that decides when to stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rankpolicy.clicks.models.definition import Expectation, Parameters
from rankpolicy.clicks.models.on_device.expectation import DeviceExpectation, DeviceParameters
from rankpolicy.clicks.models.prior import Prior

CUDA = torch.device("cuda")


def to_device(parameters: Parameters, device: torch.device) -> dict[str, Tensor]:
    """Parameters as tensors."""
    return {name: torch.tensor(values, dtype=torch.float64, device=device) for name, values in parameters.items()}


def to_host(arrays: DeviceParameters) -> dict[str, Any]:
    """Tensors as numpy arrays."""
    return {name: values.cpu().numpy() for name, values in arrays.items()}


def expectation_on_host(counts: DeviceExpectation) -> Expectation:
    """The counts as numpy arrays."""
    return Expectation(
        successes=to_host(counts.successes),
        trials=to_host(counts.trials),
        log_likelihood=float(counts.log_likelihood),
    )


def maximised_on_device(counts: DeviceExpectation, priors: Mapping[str, Prior]) -> dict[str, Tensor]:
    """The M step: the posterior mean of each parameter (clicks/models/prior.py)."""
    return {
        name: _posterior_mean(counts.successes[name], trials, priors[name]) for name, trials in counts.trials.items()
    }


def objective_on_device(counts: DeviceExpectation, parameters: DeviceParameters, priors: Mapping[str, Prior]) -> float:
    """Log-likelihood plus log prior."""
    logs = [_log_prior(values, priors[name]) for name, values in parameters.items() if priors[name] != (0.0, 0.0)]
    return float(counts.log_likelihood + sum(logs))


def _posterior_mean(successes: Tensor, trials: Tensor, prior: Prior) -> Tensor:
    total = trials + sum(prior)
    hits = torch.minimum(successes.clamp(min=0.0) + prior[0], total)
    return hits / total if sum(prior) > 0 else torch.where(total > 0, hits / total, 0.5)


def _log_prior(values: Tensor, prior: Prior) -> Tensor:
    return prior[0] * values.log().sum() + prior[1] * torch.log1p(-values).sum()
