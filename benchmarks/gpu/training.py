"""Epochs of training on a CUDA device, for `python -m benchmarks.gpu`.

A policy is an MLP 64-64 trained on exact gradients of ndcg@10 with batches of 64 queries, on data that lie on the device. Times are those
of whole epochs, read on the host after the last number of the epoch has arrived.
"""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.gpu.profile import profiled_epoch
from rankpolicy.data.batches import RaggedTensors
from rankpolicy.kernels import TRITON_SWITCH
from rankpolicy.models import MLP, Average
from rankpolicy.objectives import PolicyGradient
from rankpolicy.training import NetworkFit, TrainingSettings, ensemble, fit_networks

BATCH, EPOCHS = 64, 5
BYTES_PER_SECOND = 4.8e12  # memory of an H200
PRODUCTS_PER_SECOND = 3.3e13  # multiply-adds in float32 without tensor cores, an H200's datasheet rate halved


def data(num_queries: int, num_items: int, num_features: int) -> RaggedTensors:
    generator = torch.Generator("cuda").manual_seed(0)
    features = torch.randn(num_queries * num_items, num_features, generator=generator, device="cuda")
    worth = features[:, :8].sum(1) + torch.randn(len(features), generator=generator, device="cuda")
    labels = torch.bucketize(worth, torch.tensor([2.0, 3.5, 5.0, 6.5], device="cuda")).float()
    return RaggedTensors(features, labels, np.arange(num_queries + 1) * num_items)


def new_fit(train: RaggedTensors, *, seed: int = 0, learning_rate: float = 1e-3, dropout: float = 0.0) -> NetworkFit:
    generator = torch.Generator().manual_seed(seed)
    network = MLP(hidden=(64, 64), dropout=dropout).new_network_of(train.features.shape[1], generator=generator)  # type: ignore[union-attr]
    return NetworkFit(
        network=Average([network]).to("cuda"),
        train=train,
        objective=PolicyGradient(reward="ndcg@10", estimator="exact"),
        settings=TrainingSettings(epochs=EPOCHS, batch_queries=BATCH, learning_rate=learning_rate),
        generator=torch.Generator("cuda").manual_seed(seed),
    )


def seconds_per_epoch(fits: list[NetworkFit]) -> tuple[float, float, float]:
    """Median seconds of an epoch after the first, seconds until the end of the first, and the last reward."""
    ends: list[float] = []
    fits[0].report_epoch = lambda *_: ends.append(time.perf_counter())
    start = time.perf_counter()
    states = fit_networks(fits)
    return statistics.median(np.diff(ends)), ends[0] - start, states[0].reports[-1]


def epoch(
    name: str,
    train: RaggedTensors,
    *,
    num_policies: int = 1,
    own_seeds: bool = False,
    goal: float | None,
    dropout: float = 0.0,
) -> dict[str, Any]:

    def new_fits() -> list[NetworkFit]:
        return [
            new_fit(train, seed=k if own_seeds else 0, learning_rate=1e-3 * (1 + k / 64), dropout=dropout)
            for k in range(num_policies)
        ]

    seconds, first, reward = seconds_per_epoch(new_fits())
    num_rows, num_features = train.features.shape  # type: ignore[union-attr]
    # Forward and the gradient of the weights; activations have a gradient too behind the first layer.
    products = num_rows * num_policies * (2 * num_features * 64 + 3 * 64 * 64 + 3 * 64)
    num_bytes = 2 * 4 * num_rows * num_features * (num_policies if own_seeds else 1)
    profiled = profiled_epoch(new_fits()) if goal is not None else None
    return {
        "name": name,
        "epoch_s": round(seconds, 4),
        "goal_s": goal,
        "per_policy_ms": round(1000 * seconds / num_policies, 2),
        "until_first_epoch_s": round(first, 2),
        "products_at_limit_s": round(products / PRODUCTS_PER_SECOND, 4),
        "features_moved_at_limit_s": round(num_bytes / BYTES_PER_SECOND, 4),
        "reward": round(reward, 4),
    } | (shares(profiled, num_steps=-(-(len(train.offsets) - 1) // BATCH)) if profiled else {})


def shares(profiled: dict[str, Any], *, num_steps: int) -> dict[str, Any]:
    """Kernels per step, time in which the device was busy, and the parts of it that go to products and to copies."""
    return {
        "kernels_per_step": round(profiled["launches"] / num_steps, 1),
        "busy_us_per_step": round(profiled["busy_us"] / num_steps, 1),
        "share_of_products": round(profiled["share_of_products"], 2),
        "share_of_copies": round(profiled["share_of_copies"], 2),
        "longest_us": {
            name[:24]: round(total / num_steps, 1) for name, (_, total) in list(profiled["kernels"].items())[:6]
        },
    }


def torch_path(name: str, num_items: int, num_features: int, num_queries: int) -> dict[str, Any]:
    """The same epoch without kernels, graphs and device-side batches, from a few hundred queries."""
    train = data(384, num_items, num_features)
    before, switch = ensemble.stays_on_device, os.environ.get(TRITON_SWITCH)
    ensemble.stays_on_device, os.environ[TRITON_SWITCH] = (lambda fit: False), "0"
    try:
        fit = new_fit(train)
        fit.settings = replace(fit.settings, epochs=2)
        seconds, _, _ = seconds_per_epoch([fit])
    finally:
        ensemble.stays_on_device = before
        os.environ.pop(TRITON_SWITCH)
        if switch is not None:
            os.environ[TRITON_SWITCH] = switch
    return {"name": name, "epoch_s": round(seconds * num_queries / 384, 2), "measured": "on 384 queries, scaled"}


def rows() -> Any:
    yahoo = data(19_944, 24, 700)
    yield epoch("Yahoo-sized epoch, one policy", yahoo, goal=0.045)
    yield epoch("Yahoo-sized epoch, one policy, dropout 0.3", yahoo, goal=None, dropout=0.3)
    yield epoch("Yahoo-sized epoch, 32 policies", yahoo, num_policies=32, goal=0.16)
    yield epoch("Yahoo-sized epoch, 32 seeds", yahoo, num_policies=32, own_seeds=True, goal=None)
    del yahoo
    mslr = data(6_000, 120, 136)
    yield epoch("MSLR-sized epoch, one policy", mslr, goal=0.06)
    yield epoch("MSLR-sized epoch, 32 policies", mslr, num_policies=32, goal=None)
    del mslr
    yield torch_path("Yahoo-sized epoch, plain torch", 24, 700, 19_944)
    yield torch_path("MSLR-sized epoch, plain torch", 120, 136, 6_000)
