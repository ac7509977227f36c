"""Training on a CUDA device without the host: work captured in CUDA graphs, which run again as one operation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

logger = logging.getLogger("rankpolicy.training")

_WARM_UP = 2  # runs before a capture, in which kernels are compiled


class Capturable(Protocol):
    """What may have a graph; without one it is run operation by operation."""

    graph: Any


def capture_all(
    programs: Sequence[Capturable],
    capture: Callable[[Any, Any], Any],
    *,
    generators: Sequence[torch.Generator],
    changing_tensors: Sequence[Tensor] = (),
) -> None:
    """Give each program the graph that ``capture(program, memory pool)`` makes; where one fails, none of them has one.

    Generators and tensors end as they were, although warming up uses them.
    """
    states = [generator.get_state() for generator in generators]
    values = [tensor.clone() for tensor in changing_tensors]
    pool = torch.cuda.graph_pool_handle()  # shared: the graphs do not run at the same time
    try:
        for program in programs:
            program.graph = capture(program, pool)
    except RuntimeError as error:
        for program in programs:
            program.graph = None
        torch.cuda.synchronize()
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        logger.info("training runs without a CUDA graph: %s", reason)
    for tensor, value in zip(changing_tensors, values, strict=True):
        tensor.copy_(value)
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)


def graph_of(work: Callable[[], Any], *, generators: Sequence[torch.Generator], pool: Any) -> torch.cuda.CUDAGraph:
    """The graph of some work that waits for nothing and has been warmed up."""
    graph = torch.cuda.CUDAGraph()
    for generator in {id(generator): generator for generator in generators}.values():
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph, pool=pool):
        work()
    return graph


def warm_up(work: Callable[[], Any]) -> None:
    """Run some work twice on a stream of its own, as torch asks for before a capture."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UP):
            work()
    torch.cuda.current_stream().wait_stream(stream)


class GraphedNetwork:
    """A network as two graphs: from inputs in fixed memory to scores, and from slopes of the scores to gradients of the weights.

    ``scores`` computes the scores (member, row) without a look at the device, drawing dropout from ``generator``.
    """

    def __init__(
        self, scores: Callable[[], Tensor], weights: Sequence[Tensor], *, generator: torch.Generator, pool: Any
    ) -> None:
        def forwards_and_backwards() -> None:
            computed = scores()
            torch.autograd.grad(computed, weights, torch.zeros_like(computed), allow_unused=True)

        warm_up(forwards_and_backwards)
        self.weights = weights
        self.forwards, self.backwards = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        self.forwards.register_generator_state(generator)
        with torch.cuda.graph(self.forwards, pool=pool):
            computed = scores()
        self.slope = torch.zeros_like(computed)
        with torch.cuda.graph(self.backwards, pool=pool):
            self.gradients = torch.autograd.grad(computed, weights, self.slope, allow_unused=True)
        self.fixed_scores = computed.detach()

    def scores(self) -> Tensor:
        """Scores (member, row), through which autograd reaches the weights; the next call writes over them."""
        scores: Tensor = _Replay.apply(self, *self.weights)  # type: ignore[no-untyped-call]
        return scores


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, network: GraphedNetwork, *weights: Tensor) -> Tensor:
        ctx.network = network
        network.forwards.replay()
        return network.fixed_scores.detach()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        network = ctx.network
        network.slope.copy_(slope)
        network.backwards.replay()
        # Detached, so that autograd takes them as they are, without a copy.
        return None, *(None if gradient is None else gradient.detach() for gradient in network.gradients)
