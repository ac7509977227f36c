"""A network in CUDA graphs, one for its way forwards and one for its way backwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

_WARM_UP = 2  # runs before a capture


class CapturedNetwork:
    """A network on a CUDA device as two graphs: from what lies in fixed memory to scores, and from slopes of scores to gradients.

    Parameters
    ----------
    scores
        Computes the scores (member, row), without a look at the device.
    weights
        The weights whose gradients are wanted.
    generator
        Where dropout is drawn from.
    pool
        The memory of graphs that do not run at the same time.
    """

    def __init__(
        self, scores: Callable[[], Tensor], weights: Sequence[Tensor], *, generator: torch.Generator, pool: Any
    ) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                found = scores()
                torch.autograd.grad(found, weights, torch.zeros_like(found), allow_unused=True)
        torch.cuda.current_stream().wait_stream(stream)
        self._forwards, self._backwards = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        self._forwards.register_generator_state(generator)
        with torch.cuda.graph(self._forwards, pool=pool):
            own = scores()
        self._slope = torch.zeros_like(own)
        with torch.cuda.graph(self._backwards, pool=pool):
            self._gradients = torch.autograd.grad(own, weights, self._slope, allow_unused=True)
        self._scores = own.detach()

    def scores(self) -> Tensor:
        """Scores (member, row); the next call writes over them."""
        self._forwards.replay()
        return self._scores

    def gradients(self, slope: Tensor) -> Sequence[Tensor | None]:
        """The gradients of the weights, for dloss/dscores (member, row) at the last scores; the next call writes over them.

        Parameters
        ----------
        slope
            Slopes of the loss in the scores.
        """
        self._slope.copy_(slope)
        self._backwards.replay()
        return self._gradients
