"""Modules that draw random numbers in training: the fit loop hands them the generator of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


class RandomModule(nn.Module):
    """A module that draws from ``generator`` when it is trained; None stands for torch's global generator."""

    def __init__(self) -> None:
        super().__init__()
        self.generator: torch.Generator | None = None


@contextmanager
def drawing_from(network: nn.Module, generator: torch.Generator) -> Iterator[None]:
    """Let all random modules of a network draw from this generator, until the block ends."""
    modules = [module for module in network.modules() if isinstance(module, RandomModule)]
    for module in modules:
        module.generator = generator
    try:
        yield
    finally:
        for module in modules:
            module.generator = None


@contextmanager
def global_generator_seeded_by(generator: torch.Generator | None) -> Iterator[None]:
    """Seed torch's global generators from this one, and put them back when the block ends; None leaves them as they are.

    For code of others, such as a language model or a user's own network, which can draw from torch's global generators alone.
    """
    if generator is None:
        yield
        return
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    with torch.random.fork_rng(devices=[generator.device] if generator.device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
