"""AdamW for networks that are trained together, each with its own step size and weight decay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankpolicy.kernels import HAS_NUMBA, on_gpu

BETAS, EPSILON = (0.9, 0.999), 1e-8
_BETAS_OF_KERNELS = BETAS  # which they have as constants


class StackedAdamW:
    """AdamW (Loshchilov & Hutter 2019): with g the gradient and t the number of steps, for each member

        m := β1 m + (1 - β1) g,    v := β2 v + (1 - β2) g²,
        w := (1 - rate * decay) w - rate * m / (1 - β1^t) / (sqrt(v / (1 - β2^t)) + ε).

    Parameters
    ----------
    weights
        Tensors whose first axis is the member.
    flat
        The memory of all of them, one after the other, where it is one array; a kernel then takes all in one launch.
    learning_rates, weight_decays
        One number per member.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        *,
        flat: Tensor | None = None,
        learning_rates: Sequence[float],
        weight_decays: Sequence[float],
    ) -> None:
        self.weights = list(weights)
        self.flat = (
            torch.cat([weight.detach().reshape(-1) for weight in self.weights]) if flat is None else flat.detach()
        )
        self._shares_memory = flat is not None
        like = self.weights[0].detach()
        self.rates = like.new_tensor(learning_rates)
        self.keeps = like.new_tensor(
            [1 - rate * decay for rate, decay in zip(learning_rates, weight_decays, strict=True)]
        )
        self.flat_first, self.flat_second = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.first, self.second = self._parts(self.flat_first), self._parts(self.flat_second)
        self._segments: Tensor | None = None
        self._members: NDArray[np.int64] | None = None
        self.steps = torch.zeros((), dtype=torch.float64, device=like.device)

    def _parts(self, flat: Tensor) -> list[Tensor]:
        """A flat array as views in the shapes of the weights."""
        parts = flat.split([weight.numel() for weight in self.weights])
        return [part.view(weight.shape) for part, weight in zip(parts, self.weights, strict=True)]

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Move the weights.

        Parameters
        ----------
        gradients
            Of each weight tensor, in its shape.
        """
        if BETAS == _BETAS_OF_KERNELS and on_gpu(self.rates):
            self.step_flat(torch.cat([gradient.reshape(-1) for gradient in gradients]))
            return
        self.steps += 1
        take = _torch_step
        if (
            BETAS == _BETAS_OF_KERNELS
            and self.steps.device.type == "cpu"
            and HAS_NUMBA
            and self.rates.dtype == torch.float32
        ):
            if self._shares_memory:
                self._compiled_step_of_all(torch.cat([gradient.reshape(-1) for gradient in gradients]))
                return
            take = _compiled_step
        for weight, gradient, first, second in zip(self.weights, gradients, self.first, self.second, strict=True):
            take(weight.detach(), gradient.contiguous(), first, second, self.rates, self.keeps, self.steps)

    def _compiled_step_of_all(self, gradient: Tensor) -> None:
        from rankpolicy.kernels.adamw import adamw_flat, parts_of_members

        if self._members is None:
            self._members = parts_of_members([weight.shape for weight in self.weights])
        adamw_flat(
            self.flat.numpy(),
            gradient.numpy(),
            self.flat_first.numpy(),
            self.flat_second.numpy(),
            self.rates.numpy(),
            self.keeps.numpy(),
            float(self.steps),
            self._members,
        )

    @torch.no_grad()
    def step_flat(self, gradient: Tensor) -> None:
        """Move the weights.

        Parameters
        ----------
        gradient
            Of all weights, as they lie in ``flat``.
        """
        if BETAS != _BETAS_OF_KERNELS or not on_gpu(self.rates):
            self.step(self._parts(gradient))
            return
        from rankpolicy.kernels.triton.adamw import adamw, segments

        if not self._shares_memory:
            self.flat = torch.cat([weight.detach().reshape(-1) for weight in self.weights])
        if self._segments is None:
            self._segments = segments([weight.shape for weight in self.weights], self.rates.device)
        self.steps += 1
        longest = max(weight.numel() for weight in self.weights)
        moments = (self.flat_first, self.flat_second)
        numbers = (self.rates, self.keeps, self.steps)
        adamw(self.flat, gradient, *moments, *numbers, parts=self._segments, longest=longest)
        if not self._shares_memory:
            for weight, moved in zip(self.weights, self._parts(self.flat), strict=True):
                weight.detach().copy_(moved)

    def keep(self, members: Sequence[int], weights: Sequence[Tensor], *, flat: Tensor | None = None) -> StackedAdamW:
        """The optimizer of some of the members, where they are now.

        Parameters
        ----------
        members
            Which of them.
        weights, flat
            Their weights, and the memory of these.
        """
        none = [0.0] * len(members)
        kept = StackedAdamW(weights, flat=flat, learning_rates=none, weight_decays=none)
        index = torch.tensor(list(members), device=self.rates.device)
        kept.rates, kept.keeps, kept.steps = self.rates[index], self.keeps[index], self.steps.clone()
        for own, parts in ((kept.first, self.first), (kept.second, self.second)):
            for kept_part, part in zip(own, parts, strict=True):
                kept_part.copy_(part[index])
        return kept

    def state(self) -> list[Tensor]:
        """All tensors that a step changes."""
        weights = [self.flat] if self._shares_memory else [weight.detach() for weight in self.weights]
        return [*weights, self.flat_first, self.flat_second, self.steps]

    def state_dict(self) -> dict[str, Any]:
        """Moments and steps in the form that torch's optimizers have."""
        moments = zip(self.first, self.second, strict=True)
        slots = {
            place: {"step": self.steps, "exp_avg": first, "exp_avg_sq": second}
            for place, (first, second) in enumerate(moments)
        }
        return {"state": slots, "param_groups": []}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on from a saved state.

        Parameters
        ----------
        saved
            What ``state_dict`` gave.
        """
        for place, (first, second) in enumerate(zip(self.first, self.second, strict=True)):
            slots = saved["state"][place]
            for own, name in ((first, "exp_avg"), (second, "exp_avg_sq")):
                if own.shape != slots[name].shape:
                    raise ValueError(f"{name} {place} has the shape {tuple(slots[name].shape)}, not {tuple(own.shape)}")
                own.copy_(slots[name])
            self.steps.copy_(slots["step"])


def _torch_step(
    weight: Tensor, gradient: Tensor, first: Tensor, second: Tensor, rates: Tensor, keeps: Tensor, steps: Tensor
) -> None:
    """The reference."""
    shape = (-1, *[1] * (weight.dim() - 1))
    first.lerp_(gradient, 1 - BETAS[0])
    second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
    corrections = [1 - beta**steps for beta in BETAS]
    spread = (second / corrections[1].to(weight.dtype)).sqrt_().add_(EPSILON)
    weight.mul_(keeps.view(shape)).sub_(first / spread * (rates / corrections[0].to(weight.dtype)).view(shape))


def _compiled_step(
    weight: Tensor, gradient: Tensor, first: Tensor, second: Tensor, rates: Tensor, keeps: Tensor, steps: Tensor
) -> None:
    from rankpolicy.kernels.adamw import adamw

    w, g, m, v = (tensor.view(len(rates), -1).numpy() for tensor in (weight, gradient, first, second))
    adamw(w, g, m, v, rates.numpy(), keeps.numpy(), float(steps))
