"""Networks that are trained together: which can be, and one epoch of theirs."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from rankpolicy.models.average import Average
from rankpolicy.models.stack import Stack, stack_shape
from rankpolicy.objectives.value import (
    Objective,
    ObjectiveValue,
    ScheduledObjective,
    can_merge,
    merged,
    value_and_slope,
)
from rankpolicy.training.batches import StepBatch, shuffled_steps
from rankpolicy.training.captured_network import CapturedNetwork
from rankpolicy.training.data_parallel import (
    SummedAdamW,
    current_worker,
    sum_over_workers,
    with_summed_gradients,
)
from rankpolicy.training.kernel_networks import KernelNetworks
from rankpolicy.training.network_fit import NetworkFit, TrainingState
from rankpolicy.training.optimizer import StackedAdamW
from rankpolicy.training.resident import ResidentSteps
from rankpolicy.training.text_steps import TextSteps
from rankpolicy.types import RankPolicyError

logger = logging.getLogger("rankpolicy.training")

_LOSS, _REPORT = "the loss", "the report"  # beside the names of parts


def stays_on_device(fit: NetworkFit) -> bool:
    """Whether batches are cut on the device of the data: on a GPU, where the host would take longer than the step.

    Parameters
    ----------
    fit
        The network and its data.
    """
    return fit.generator.device.type == "cuda" and current_worker() is None


def stacks_of(fits: Sequence[NetworkFit]) -> list[list[int]]:
    """The places of networks that are trained together: groups of equal size, one after the other, of equal data and seeds.

    Parameters
    ----------
    fits
        The networks to train.
    """
    if current_worker() is not None:  # each has its part of every batch, one network after the other
        return [[place] for place in range(len(fits))]
    alike: list[list[int]] = []
    for place, fit in enumerate(fits):
        found = next((places for places in alike if _can_train_together(fits[places[0]], fit)), None)
        if found is None:
            alike.append([place])
        else:
            found.append(place)
    stacks: list[list[int]] = []
    for places in alike:
        by_size: dict[int, list[int]] = {}
        for group in _groups_of(fits, places):
            by_size.setdefault(len(group), []).extend(group)
        stacks += by_size.values()
    return stacks


def _can_train_together(one: NetworkFit, other: NetworkFit) -> bool:
    if one.checkpoint is not None or other.checkpoint is not None:
        return False
    shape = stack_shape(one.network)
    return (
        shape is not None
        and shape == stack_shape(other.network)
        and one.generator.device == other.generator.device
        and one.settings.batch_queries == other.settings.batch_queries
        and len(one.train.offsets) == len(other.train.offsets)
        and (one.train.groups is None) == (other.train.groups is None)
        and (one.train.query_weights is None) == (other.train.query_weights is None)
        and can_merge(one.objective, other.objective)
        and not _draws_for_long_lists(one)
        and not _draws_for_long_lists(other)
        and (one.train is other.train or not stays_on_device(one) or _have_equal_lengths(one, other))
    )


def _draws_for_long_lists(fit: NetworkFit) -> bool:
    """Whether the objective draws rankings for the longest list of the data."""
    draws_for = getattr(fit.objective, "draws_for", None)
    return draws_for is not None and bool(draws_for(int(np.diff(fit.train.offsets).max())))


def _have_equal_lengths(one: NetworkFit, other: NetworkFit) -> bool:
    """Whether the queries of two datasets have the same lengths, so that steps on a device are cut at the same places."""
    return np.array_equal(np.sort(np.diff(one.train.offsets)), np.sort(np.diff(other.train.offsets)))


def _groups_of(fits: Sequence[NetworkFit], places: Sequence[int]) -> list[list[int]]:
    """The places of equal data and equal states of the generator."""
    groups: dict[tuple[int, bytes], list[int]] = {}
    for place in places:
        fit = fits[place]
        key = (id(fit.train), fit.generator.get_state().numpy().tobytes())
        groups.setdefault(key, []).append(place)
    return list(groups.values())


class Training:
    """Networks in training, all at the same epoch.

    Parameters
    ----------
    fits
        The networks and what they are trained with, in the order of ``stacks_of``.
    states
        Their states.
    stack
        Their weights; None for a single network that cannot be stacked.
    """

    def __init__(self, fits: Sequence[NetworkFit], states: Sequence[TrainingState], stack: Stack | None) -> None:
        self.fits, self.states, self.stack = list(fits), list(states), stack
        num_groups = 1 if stack is None else stack.num_groups
        of_groups = self.fits[:: len(self.fits) // num_groups]
        self.trains = [fit.train for fit in of_groups]
        self.generators = [fit.generator for fit in of_groups]
        network = self.fits[0].network
        self.num_networks = len(network.members) if isinstance(network, Average) else 1
        self.members_per_group = len(self.fits) // num_groups * self.num_networks
        self.reports: list[float] = []
        self.parts: dict[str, list[float]] = {}
        self._sums: dict[str, Tensor] = {}
        self._objective = self._next_objective()
        is_resident = stack is not None and stays_on_device(self.fits[0])
        self._by_kernel = (
            KernelNetworks(stack)
            if stack is not None and is_resident and KernelNetworks.serve(stack, self.trains[0].features)
            else None
        )
        self._resident = self._new_resident_steps()

    @classmethod
    def of(cls, fits: Sequence[NetworkFit]) -> Training:
        """Training that starts now.

        Parameters
        ----------
        fits
            The networks and what they are trained with, in the order of ``stacks_of``.
        """
        networks = [fit.network for fit in fits]
        if stack_shape(networks[0]) is None:
            optimizer: object = with_summed_gradients(_optimizer_of(fits[0]))
            stack = None
        else:
            stack = Stack(networks, num_groups=len(_groups_of(fits, range(len(fits)))))
            adamw = StackedAdamW if current_worker() is None else SummedAdamW
            optimizer = adamw(
                stack.weights,
                flat=stack.flat,
                learning_rates=[fit.settings.learning_rate for fit in fits for _ in range(stack.num_networks)],
                weight_decays=[fit.settings.weight_decay for fit in fits for _ in range(stack.num_networks)],
            )
        return cls(fits, [TrainingState(fit.network, optimizer, fit.generator) for fit in fits], stack)

    def train_epoch(self) -> None:
        """One pass over all queries; ``reports`` and ``parts`` then hold the numbers of the objective as means over queries."""
        for fit in self.fits:
            if not fit.network.training:
                fit.network.train()
        for total in self._sums.values():
            total.zero_()
        if self._resident is None or isinstance(self.fits[0].objective, ScheduledObjective):
            self._objective = self._next_objective()
        if self._resident is None:
            num_queries = 0
            for batch in shuffled_steps(
                self.trains,
                self.fits[0].settings.batch_queries,
                generators=self.generators,
                members_per_group=self.members_per_group,
                num_policies=len(self.fits),
            ):
                self._step(batch)
                self._check_finite()
                num_queries += batch.num_queries
                if current_worker() is None and all(fit.is_over() for fit in self.fits):
                    break  # several workers take the same number of steps
        else:
            num_queries = len(self.trains[0].offsets) - 1
            self._resident.run_epoch(self._step, epoch=self.states[0].epoch)
            self._check_finite()
        sum_over_workers(list(self._sums.values()))
        means = {name: (total / num_queries).reshape(-1).tolist() for name, total in self._sums.items()}
        del means[_LOSS]
        self.reports, self.parts = means.pop(_REPORT), means

    def _next_objective(self) -> Objective:
        first = self.fits[0].objective
        if isinstance(first, ScheduledObjective):
            return first.at_epoch(self.states[0].epoch, self.states[0].parts)
        weight = next(self.fits[0].network.parameters())
        return merged([fit.objective for fit in self.fits], weight.detach())

    def _new_resident_steps(self) -> ResidentSteps | TextSteps | None:
        """The steps over data on the device; None where batches are cut on the host."""
        first = self.fits[0]
        if self.stack is None and stays_on_device(first) and TextSteps.serve(first.network, first.train.features):
            return self._new_text_steps()
        if self.stack is None or not isinstance(first.train.features, Tensor) or not stays_on_device(first):
            return None
        reward = getattr(first.objective, "reward", None)
        steps = ResidentSteps(
            self.trains,
            first.settings.batch_queries,
            generators=self.generators,
            members_per_group=self.members_per_group,
            num_policies=len(self.fits),
            reward=reward if getattr(reward, "is_additive", False) else None,
            gathers=self._by_kernel is None,
        )
        if first.train.features.is_cuda:
            if hasattr(first.objective, "per_policy"):
                steps.capture(self._step, self.states[0].optimizer.state())
            else:
                logger.info("training runs without a CUDA graph: %s changes on its way", type(first.objective).__name__)
        return steps

    def _new_text_steps(self) -> TextSteps:
        fit = self.fits[0]
        steps = TextSteps(
            fit.train, fit.settings.batch_queries, generator=fit.generator, num_networks=self.num_networks
        )
        if fit.train.labels.is_cuda:
            fit.network.train()
            steps.capture(lambda texts: _member_scores(fit.network, texts), self._trained_weights())
        return steps

    def _trained_weights(self) -> list[Tensor]:
        return [weight for weight in self.fits[0].network.parameters() if weight.requires_grad]

    def _step(self, batch: StepBatch) -> None:
        optimizer = self.states[0].optimizer
        if self._by_kernel is not None:
            assert isinstance(batch.features, Tensor)
            assert batch.rows is not None
            with torch.no_grad():
                scores = self._by_kernel.scores(batch.features, batch.rows, generators=self.generators)
            value, slope = value_and_slope(
                self._objective, batch.padded(scores), batch.queries, generator=self.generators[0]
            )
            own = slope if self.num_networks == 1 else slope * self.num_networks
            optimizer.step_flat(self._by_kernel.gradient(own.view_as(scores)))
        else:
            value = self._step_by_autograd(batch)
        for name, number in ((_LOSS, value.loss.detach()), (_REPORT, value.report), *value.parts.items()):
            if name not in self._sums:
                self._sums[name] = torch.zeros_like(number)
            self._sums[name].add_(number, alpha=batch.num_queries)

    def _step_by_autograd(self, batch: StepBatch) -> ObjectiveValue:
        # Networks that are trained together each see their own rankings, as if the batch had more queries.
        if batch.captured is not None:
            return self._captured_step(batch, batch.captured)
        if self.stack is None:
            features = batch.features[0] if isinstance(batch.features, Tensor) else batch.features
            scores = _member_scores(self.fits[0].network, features)
        else:
            assert isinstance(batch.features, Tensor)
            scores = self.stack.training_scores(batch.features, batch.num_items, generators=self.generators)
        value = self._objective(batch.padded(scores), batch.queries, generator=self.generators[0])
        loss = (value.loss * self.num_networks).sum()
        optimizer = self.states[0].optimizer
        if isinstance(optimizer, StackedAdamW):
            optimizer.step(torch.autograd.grad(loss, optimizer.weights))
        else:
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        return value

    def _captured_step(self, batch: StepBatch, network: CapturedNetwork) -> ObjectiveValue:
        scores = network.scores()
        value, slope = value_and_slope(
            self._objective, batch.padded(scores), batch.queries, generator=self.generators[0]
        )
        gradients = network.gradients(slope.view_as(scores) * self.num_networks)
        for weight, gradient in zip(self._trained_weights(), gradients, strict=True):
            weight.grad = gradient
        self.states[0].optimizer.step()
        return value

    def _check_finite(self) -> None:
        loss, report = self._sums[_LOSS], self._sums[_REPORT]
        if math.isfinite(float(loss.sum() + report.sum())):
            return
        is_wrong = ~(loss.isfinite() & report.isfinite()).reshape(-1)
        place = int(is_wrong.nonzero()[0]) if is_wrong.any() else 0
        raise RankPolicyError(
            f"training stopped in epoch {self.states[place].epoch + 1}: the loss is not finite "
            f"({float(loss.reshape(-1)[place]):g}). "
            f"Lower learning_rate (now {self.fits[place].settings.learning_rate:g}), scale the features (scaling='standardize'), "
            "or map labels to small grades."
        )

    def split(self, places: Sequence[int]) -> list[Training]:
        """Training of some of the networks, without the others: in parts whose groups have equal size.

        Parameters
        ----------
        places
            Which of them go on.
        """
        optimizer, stack = self.states[0].optimizer, self.stack
        assert stack is not None
        per_group = len(self.fits) // len(self.trains)
        groups = [[place for place in places if place // per_group == group] for group in range(len(self.trains))]
        for place in places:
            self.fits[place].generator.set_state(self.generators[place // per_group].get_state())
        stack.release()
        parts = []
        for size in sorted({len(group) for group in groups} - {0}):
            chosen = [group for group in groups if len(group) == size]
            kept = [place for group in chosen for place in group]
            fits, states = [self.fits[place] for place in kept], [self.states[place] for place in kept]
            own = Stack([fit.network for fit in fits], num_groups=len(chosen))
            members = [place * self.num_networks + number for place in kept for number in range(self.num_networks)]
            going_on = optimizer.keep(members, own.weights, flat=own.flat)
            for state in states:
                state.optimizer = going_on
            parts.append(Training(fits, states, own))
        return parts

    def release(self) -> None:
        """Give every network weights of its own again."""
        if self.stack is not None:
            self.stack.release()


def copied_weights(network: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights of a network.

    Parameters
    ----------
    network
        The network.
    """
    return {name: weight.detach().clone() for name, weight in network.state_dict().items()}


def _optimizer_of(fit: NetworkFit) -> torch.optim.Optimizer:
    weights = list(fit.network.parameters())
    is_fused = all(weight.is_floating_point() and weight.device.type in ("cpu", "cuda") for weight in weights)
    return torch.optim.AdamW(
        weights, lr=fit.settings.learning_rate, weight_decay=fit.settings.weight_decay, fused=is_fused or None
    )


def _member_scores(network: nn.Module, features: object) -> Tensor:
    """Flat scores of each network that is trained (member, item)."""
    if isinstance(network, Average):
        scores: Tensor = network.member_scores(features)  # type: ignore[arg-type]
        return scores
    own: Tensor = network(features)
    return own[None]
