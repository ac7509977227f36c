"""AdamW of all networks of a stack at once, on the one array that holds their weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

from rankpolicy.arrays import Array, alike, as_like, detached, namespace
from rankpolicy.training.network_fit import TrainingSettings

_EPSILON = 1e-8


class Stacked(Protocol):
    """Networks whose weights lie in one array: a ``Stack``, or ``LinearNetworks``."""

    @property
    def flat(self) -> Array:
        """The memory of all weights (weight,)."""

    @property
    def weights(self) -> Sequence[Array]:
        """The weights, each (network, ...)."""

    @property
    def num_networks(self) -> int:
        """How many networks a policy has."""


class FlatAdamW:
    """AdamW (Loshchilov & Hutter 2019): with g the gradient and t the number of steps, for each member

        m := β1 m + (1 - β1) g,    v := β2 v + (1 - β2) g²,
        w := (1 - rate * decay) w - rate * m / (1 - β1^t) / (sqrt(v / (1 - β2^t)) + ε).

    torch's AdamW has one step size for all weights of a tensor; a stack has those of several policies in one. ``settings`` are those of
    each policy, all with the same betas.
    """

    def __init__(self, stack: Stacked, settings: Sequence[TrainingSettings]) -> None:
        self.flat, self.shapes = detached(stack.flat), [weight.shape for weight in stack.weights]
        of_members = [policy for policy in settings for _ in range(stack.num_networks)]
        self.betas = settings[0].betas
        self.rates = self._of_weights([policy.learning_rate for policy in of_members])
        self.keeps = self._of_weights([1 - policy.learning_rate * policy.weight_decay for policy in of_members])
        xp = namespace(self.flat)
        self.first, self.second = xp.zeros_like(self.flat), xp.zeros_like(self.flat)
        # float64 on the device, where a CUDA graph counts on; 1 - 0.999^t is a small difference of numbers near 1.
        self.steps = xp.zeros((), dtype=xp.float64, device=self.flat.device)

    def step(self, gradient: Array) -> None:
        """Move the weights along the gradient of all of them (weight,)."""
        self.steps += 1
        beta, square_beta = self.betas
        self.first += (gradient - self.first) * (1 - beta)
        self.second *= square_beta
        self.second += gradient * gradient * (1 - square_beta)
        correction, square_correction = (as_like(1 - beta**self.steps, self.flat) for beta in self.betas)
        size = (self.second / square_correction) ** 0.5
        size += _EPSILON
        size *= correction
        self.flat *= self.keeps
        self.flat -= self.first / size * self.rates

    def _of_weights(self, numbers: Sequence[float]) -> Array:
        """Numbers of the members as one per weight."""
        xp, of_members = namespace(self.flat), as_like(numbers, self.flat)
        return xp.concat([xp.repeat(of_members, math.prod(shape[1:])) for shape in self.shapes])

    def _by_layer(self, flat: Array) -> list[Array]:
        """A flat array as views in the shapes of the weights (member, ...)."""
        ends = list(accumulate(math.prod(shape) for shape in self.shapes))
        return [
            flat[start:end].reshape(shape) for start, end, shape in zip([0, *ends], ends, self.shapes, strict=False)
        ]

    def continue_from(self, optimizer: FlatAdamW, members: Sequence[int]) -> None:
        """Take over the moments that some members of a larger stack have reached."""
        _, index = alike(self.flat, list(members))
        self.steps[...] = optimizer.steps
        for moments, larger in ((self.first, optimizer.first), (self.second, optimizer.second)):
            for layer, of_all in zip(self._by_layer(moments), optimizer._by_layer(larger), strict=True):
                layer[...] = of_all[index]

    def changing_tensors(self) -> list[Array]:
        """All tensors that a step changes."""
        return [self.flat, self.first, self.second, self.steps]

    def state_dict(self) -> dict[str, Any]:
        """Moments and steps in the form that torch's optimizers have."""
        slots = {"step": self.steps, "exp_avg": self.first, "exp_avg_sq": self.second}
        return {"state": {0: slots}, "param_groups": []}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        slots = saved["state"][0]
        for tensor, name in ((self.steps, "step"), (self.first, "exp_avg"), (self.second, "exp_avg_sq")):
            if tensor.shape != slots[name].shape:
                raise ValueError(f"{name} has the shape {tuple(slots[name].shape)}, not {tuple(tensor.shape)}")
            tensor[...] = slots[name]
