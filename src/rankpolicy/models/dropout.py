"""Dropout that gets eight masks from one random number: on a CPU, one number per activation would be the slowest part of a step."""

from __future__ import annotations

import torch
from torch import Tensor

from rankpolicy.models.random_module import RandomModule


class ByteDropout(RandomModule):
    """Zero each activation with probability round(256 * rate) / 256 and scale the others up to keep the mean (Srivastava et al. 2014).

    >>> ByteDropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.threshold = min(round(256 * rate), 255)

    def forward(self, activations: Tensor) -> Tensor:
        """Activations of any shape -> the same shape; unchanged outside training."""
        if not self.training or self.threshold == 0:
            return activations
        count = activations.numel()
        numbers = torch.empty((count + 7) // 8, dtype=torch.int64, device=activations.device)
        # The whole range of int64, so that all eight bytes are random.
        numbers.random_(-(2**63), None, generator=self.generator)
        draws = numbers.view(torch.uint8)[:count].view(activations.shape)
        return activations * (draws >= self.threshold) * (256 / (256 - self.threshold))
