"""Other ways to train a ranker on a CUDA device, on the same data as ours: LambdaRank in plain vectorised torch, and LightGBM's lambdarank.

LambdaRank (Burges 2010): softplus(s_j - s_i) over all pairs of a query with label_i > label_j, each weighted by the change of NDCG that a
swap of the two would make; an MLP 64-64 and Adam, batches of 64 queries cut on the device.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from benchmarks.gpu.training import BATCH, data
from rankpolicy.data.batches import RaggedTensors

EPOCHS = 3
NUM_TREES = 10


def lambda_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Mean over queries; scores and labels are (query, item)."""
    with torch.no_grad():
        gains = torch.exp2(labels) - 1
        discounts = 1 / torch.arange(2, labels.shape[1] + 2, device=labels.device).log2()
        ideal = (gains.sort(1, descending=True).values * discounts).sum(1).clamp(min=1e-9)
        ranks = scores.argsort(1, descending=True).argsort(1)
        own = discounts[ranks]
        swap = (gains[:, :, None] - gains[:, None]).abs() * (own[:, :, None] - own[:, None]).abs()
        weights = swap / ideal[:, None, None] * (labels[:, :, None] > labels[:, None])
    return (weights * softplus(scores[:, None] - scores[:, :, None])).sum((1, 2)).mean()


def lambdarank(name: str, train: RaggedTensors) -> dict[str, Any]:
    num_queries = len(train.offsets) - 1
    features = train.features
    assert isinstance(features, Tensor)
    by_query = features.view(num_queries, -1, features.shape[1])
    labels = train.labels.view(num_queries, -1)
    torch.manual_seed(0)
    layers = [nn.Linear(features.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)]
    network = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    seconds = []
    for _ in range(EPOCHS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for queries in torch.randperm(num_queries, device="cuda").split(BATCH):
            loss = lambda_loss(network(by_query[queries]).squeeze(-1), labels[queries])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return {"name": name, "epoch_s": round(statistics.median(seconds[1:]), 3), "loss": round(loss.item(), 4)}


def lightgbm(train: RaggedTensors) -> dict[str, Any]:
    """Seconds per tree of 31 leaves on the device; or why there are none."""
    name = "MSLR-sized, LightGBM lambdarank on the GPU, seconds per tree"
    try:
        import lightgbm
    except (ImportError, OSError) as error:
        return {"name": name, "not_measured": str(error).splitlines()[0]}
    features = train.features
    assert isinstance(features, Tensor)
    settings = {"objective": "lambdarank", "device_type": "gpu", "max_bin": 63, "gpu_use_dp": False, "verbose": -1}
    given = lightgbm.Dataset(
        features.cpu().numpy(), train.labels.cpu().numpy(), group=np.diff(train.offsets), params=settings
    )
    try:
        lightgbm.train(settings, given, num_boost_round=1)
        start = time.perf_counter()
        lightgbm.train(settings, given, num_boost_round=NUM_TREES)
    except lightgbm.basic.LightGBMError as error:
        return {"name": name, "not_measured": str(error).splitlines()[0]}
    return {"name": name, "s": round((time.perf_counter() - start) / NUM_TREES, 4)}


def rows() -> Any:
    yield lambdarank("Yahoo-sized epoch, LambdaRank in plain torch", data(19_944, 24, 700))
    mslr = data(6_000, 120, 136)
    yield lambdarank("MSLR-sized epoch, LambdaRank in plain torch", mslr)
    yield lightgbm(mslr)
