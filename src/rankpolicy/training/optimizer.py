"""AdamW of all networks of a stack at once, on the one array that holds their weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rankpolicy.models.stack import Stack
from rankpolicy.training.network_fit import TrainingSettings

_EPSILON = 1e-8


class FlatAdamW:
    """AdamW (Loshchilov & Hutter 2019): with g the gradient and t the number of steps, for each member

        m := β1 m + (1 - β1) g,    v := β2 v + (1 - β2) g²,
        w := (1 - rate * decay) w - rate * m / (1 - β1^t) / (sqrt(v / (1 - β2^t)) + ε).

    torch's AdamW has one step size for all weights of a tensor; a stack has those of several policies in one. ``settings`` are those of
    each policy, all with the same betas.
    """

    def __init__(self, stack: Stack, settings: Sequence[TrainingSettings]) -> None:
        self.flat, self.shapes = stack.flat.detach(), [weight.shape for weight in stack.weights]
        of_members = [policy for policy in settings for _ in range(stack.num_networks)]
        self.betas = settings[0].betas
        self.rates = self._of_weights([policy.learning_rate for policy in of_members])
        self.keeps = self._of_weights([1 - policy.learning_rate * policy.weight_decay for policy in of_members])
        self.first, self.second = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        # float64 on the device, where a CUDA graph counts on; 1 - 0.999^t is a small difference of numbers near 1.
        self.steps = torch.zeros((), dtype=torch.float64, device=self.flat.device)

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        """Move the weights along the gradient of all of them (weight,)."""
        self.steps += 1
        beta, square_beta = self.betas
        self.first.lerp_(gradient, 1 - beta)
        self.second.mul_(square_beta).addcmul_(gradient, gradient, value=1 - square_beta)
        correction, square_correction = ((1 - beta**self.steps).to(self.flat.dtype) for beta in self.betas)
        size = (self.second / square_correction).sqrt_().add_(_EPSILON).mul_(correction)
        self.flat.mul_(self.keeps).sub_(torch.div(self.first, size, out=size).mul_(self.rates))

    def _of_weights(self, numbers: Sequence[float]) -> Tensor:
        """Numbers of the members as one per weight."""
        of_members = self.flat.new_tensor(numbers)
        return torch.cat([of_members.repeat_interleave(shape[1:].numel()) for shape in self.shapes])

    def _by_layer(self, flat: Tensor) -> list[Tensor]:
        """A flat array as views in the shapes of the weights (member, ...)."""
        layers = flat.split([math.prod(shape) for shape in self.shapes])
        return [layer.view(shape) for layer, shape in zip(layers, self.shapes, strict=True)]

    def continue_from(self, optimizer: FlatAdamW, members: Sequence[int]) -> None:
        """Take over the moments that some members of a larger stack have reached."""
        index = torch.tensor(list(members), device=self.flat.device)
        self.steps.copy_(optimizer.steps)
        for moments, larger in ((self.first, optimizer.first), (self.second, optimizer.second)):
            for layer, of_all in zip(self._by_layer(moments), optimizer._by_layer(larger), strict=True):
                layer.copy_(of_all[index])

    def changing_tensors(self) -> list[Tensor]:
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
            tensor.copy_(slots[name])
