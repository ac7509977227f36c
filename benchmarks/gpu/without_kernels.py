"""`python -m benchmarks.gpu.without_kernels`, with a CUDA device: what an epoch costs when one kernel gives way to plain torch.

Epochs on data of the size of Yahoo's and MSLR's, one policy and 32, as in `benchmarks.gpu.training`; every row switches one kernel off and
keeps the CUDA graph. A kernel stays only where an epoch is at least 1.5 times faster with it.
"""

from __future__ import annotations

import logging
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from benchmarks.gpu import texts
from benchmarks.gpu.training import data, new_fit
from rankpolicy.data.batches import RaggedTensors
from rankpolicy.kernels.triton import race
from rankpolicy.models.stack import Stack
from rankpolicy.objectives import PolicyGradient
from rankpolicy.training import NetworkFit, TrainingSettings, device_texts, fit_networks, optimizer
from rankpolicy.training.device_batches import DeviceBatches
from rankpolicy.training.kernel_networks import KernelNetworks

SECONDS = 225.0
SLICE = 8192  # weights of a slice that torch's fused AdamW takes as a tensor
START = time.perf_counter()
Switch = Callable[[], Any]


def off(module: str) -> Switch:
    return lambda: mock.patch.object(import_module(f"rankpolicy.{module}"), "on_gpu", return_value=False)


def set_to(owner: Any, name: str, value: Any) -> Switch:
    return lambda: mock.patch.object(owner, name, value)


class TorchAdamW(optimizer.FlatAdamW):
    """torch's fused AdamW over slices of the flat array: one call for all policies of equal step size and decay."""

    def __init__(self, stack: Stack, settings: Sequence[TrainingSettings]) -> None:
        super().__init__(stack, settings)
        self._float_steps = torch.zeros((), device=self.flat.device)
        self._policies: dict[tuple[float, float], list[int]] = {}
        for index, policy in enumerate(settings):
            self._policies.setdefault((policy.learning_rate, policy.weight_decay), []).append(index)
        self._num_networks = stack.num_networks
        self._calls: list[tuple[float, float, list[list[Tensor]]]] = []

    def _slices(self, flat: Tensor, policies: Sequence[int]) -> list[Tensor]:
        """The weights of some policies, in slices so small that every launch has work for many blocks."""
        of_layers = self._by_layer(flat)
        if len(policies) == len(self.rates) // self._num_networks:
            return list(flat.split(SLICE))
        return [
            weights
            for layer in of_layers
            for policy in policies
            for weights in layer[policy * self._num_networks : (policy + 1) * self._num_networks].view(-1).split(SLICE)
        ]

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        self._float_steps += 1
        if not self._calls:
            self._calls = [
                (rate, decay, [self._slices(flat, policies) for flat in (self.flat, self.first, self.second)])
                for (rate, decay), policies in self._policies.items()
            ]
        for (rate, decay, (weights, first, second)), policies in zip(self._calls, self._policies.values(), strict=True):
            torch._fused_adamw_(
                weights,
                self._slices(gradient, policies),
                first,
                second,
                [],
                [self._float_steps] * len(weights),
                lr=rate,
                beta1=self.betas[0],
                beta2=self.betas[1],
                weight_decay=decay,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
            )

    def changing_tensors(self) -> list[Tensor]:
        return [*super().changing_tensors(), self._float_steps]


@contextmanager
def tf32() -> Iterator[None]:
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


NETWORKS = set_to(KernelNetworks, "serve", staticmethod(lambda *_: False))
FUSED = set_to(import_module("rankpolicy.training.ensemble"), "FlatAdamW", TorchAdamW)
POLICY_SWITCHES: dict[str, tuple[Switch, ...]] = {
    "all kernels": (),
    "without relu_network": (NETWORKS,),
    "without relu_network, TF32": (NETWORKS, tf32),
    "with torch's fused adamw": (FUSED,),
    "without race_in_registers": (set_to(race, "_MOST_IN_REGISTERS", 0),),
    "without a CUDA graph": (set_to(DeviceBatches, "capture", lambda *_: None),),
}


def seconds_of(fits: list[NetworkFit], epochs: int) -> float:
    """Median seconds of an epoch after the first."""
    ends: list[float] = []
    for fit in fits:
        fit.settings = replace(fit.settings, epochs=epochs)

    def ended(*_: Any) -> None:
        torch.cuda.synchronize()
        ends.append(time.perf_counter())

    fits[0].report_epoch = ended
    fit_networks(fits)
    return statistics.median(np.diff(ends))


def rows(name: str, switches: dict[str, tuple[Switch, ...]], run: Callable[[], float]) -> None:
    base = None
    for switch, patches in switches.items():
        if time.perf_counter() - START > SECONDS:
            print(f"{name:44} {switch:42} out of time", flush=True)
            continue
        try:
            with ExitStack() as stack:
                for patch in patches:
                    stack.enter_context(patch())
                seconds = run()
        except Exception:
            print(f"{name:44} {switch:42} failed: {traceback.format_exc().splitlines()[-1]}", flush=True)
            continue
        base = seconds if base is None else base
        print(f"{name:44} {switch:42} {1000 * seconds:10.2f} ms  x {seconds / base:6.2f}", flush=True)


def policies(
    train: RaggedTensors,
    count: int,
    *,
    seeds: bool = False,
    one_rate: bool = False,
    dropout: float = 0.0,
    **changes: Any,
) -> float:
    fits = [
        new_fit(train, seed=k if seeds else 0, learning_rate=1e-3 if one_rate else 1e-3 * (1 + k / 64), dropout=dropout)
        for k in range(count)
    ]
    for fit in fits:
        for key, value in changes.items():
            setattr(fit, key, value)
    return seconds_of(fits, 4)


def some(train: RaggedTensors, num_queries: int) -> RaggedTensors:
    rows = int(train.offsets[num_queries])
    assert isinstance(train.features, Tensor)
    return RaggedTensors(train.features[:rows], train.labels[:rows], train.offsets[: num_queries + 1])


def main() -> int:
    if not torch.cuda.is_available():
        print("needs a CUDA device")
        return 1
    logging.basicConfig(level=logging.INFO, format="      %(message)s", stream=sys.stdout)
    yahoo = data(19_944, 24, 700)
    rows("Yahoo, one policy", POLICY_SWITCHES, partial(policies, yahoo, 1))
    some_switches = {name: POLICY_SWITCHES[name] for name in POLICY_SWITCHES if "without a" not in name}
    rows("Yahoo, 32 policies", some_switches, partial(policies, yahoo, 32))
    few = dict(list(POLICY_SWITCHES.items())[:3])
    rows("Yahoo, one policy, dropout 0.3", few, partial(policies, yahoo, 1, dropout=0.3))
    rows("Yahoo, 32 seeds", few, partial(policies, yahoo, 32, seeds=True))
    part = some(yahoo, 4096)
    ap = PolicyGradient(reward="ap", estimator="gumbel")
    rows(
        "4,096 of Yahoo, ap by gumbel",
        {"all kernels": (), "without gumbel": (off("gradients.gumbel"),)},
        partial(policies, part, 1, objective=ap),
    )
    reinforced = PolicyGradient(reward="ap", estimator="reinforce")
    rows(
        "4,096 of Yahoo, ap by reinforce",
        {"all kernels": (), "without reinforce": (off("gradients.reinforce"),)},
        partial(policies, part, 1, objective=reinforced),
    )
    sampled = PolicyGradient(reward="ndcg@10", estimator="pl_rank")
    rows(
        "4,096 of Yahoo, ndcg@10 by pl_rank",
        {"all kernels": (), "without pl_rank": (off("gradients.pl_rank"),)},
        partial(policies, part, 1, objective=sampled),
    )
    del yahoo, part
    mslr = data(6_000, 120, 136)
    rows("MSLR, one policy", POLICY_SWITCHES, partial(policies, mslr, 1))
    rows("MSLR, 32 policies", few, partial(policies, mslr, 32))
    part = some(mslr, 1024)
    rows(
        "1,024 of MSLR, ap by gumbel",
        {"all kernels": (), "without gumbel": (off("gradients.gumbel"),)},
        partial(policies, part, 1, objective=ap),
    )
    rows(
        "1,024 of MSLR, ndcg@10 by pl_rank",
        {"all kernels": (), "without pl_rank": (off("gradients.pl_rank"),)},
        partial(policies, part, 1, objective=sampled),
    )
    del mslr, part
    print(f"{time.perf_counter() - START:.0f} s; texts, with and without graphs of the network:", flush=True)
    wiki = texts.like_wikiqa()
    never = set_to(device_texts.DeviceTexts, "serve", staticmethod(lambda *_: False))
    for name in ("mcan",):
        rows(f"WikiQA-sized {name}", {"graphs": (), "without graphs": (never,)}, partial(text_epoch, wiki))
    print(f"{time.perf_counter() - START:.0f} s")
    return 0


def text_epoch(train: RaggedTensors) -> float:
    network = texts.mcan(50, dropout=0.3)
    return seconds_of([texts.new_fit(train, network, batch_queries=16, num_samples=20, max_positions=3)], 3)


if __name__ == "__main__":
    sys.exit(main())
