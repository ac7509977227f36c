"""Many networks at once: which of them are trained side by side, and how; each ends as it would alone."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankpolicy.data.batches import RaggedTensors
from rankpolicy.models.layers import drawing_from
from rankpolicy.models.stack import Stack, stack_shape
from rankpolicy.objectives.value import Objective, ScheduledObjective, can_merge, merged, value_and_slope
from rankpolicy.training.checkpoint import open_checkpoint
from rankpolicy.training.data_parallel import current_worker, for_this_worker
from rankpolicy.training.device_batches import DeviceBatches
from rankpolicy.training.device_texts import DeviceTexts
from rankpolicy.training.grouped_batches import StepBatch, shuffled_steps
from rankpolicy.training.kernel_networks import KernelNetworks
from rankpolicy.training.loop import (
    EpochMeans,
    EpochSums,
    copied_weights,
    end_epoch,
    has_run_its_epochs,
    load_best_weights,
    objective_of_epoch,
    train_network,
)
from rankpolicy.training.module_step import single_thread_if_small
from rankpolicy.training.network_fit import NetworkFit, TrainingSettings, TrainingState
from rankpolicy.training.optimizer import FlatAdamW

logger = logging.getLogger("rankpolicy.training")


def fit_network(
    network: nn.Module,
    train: RaggedTensors,
    objective: Objective,
    *,
    settings: TrainingSettings,
    generator: torch.Generator,
    **options: Any,
) -> TrainingState:
    """Train ``network`` in place; with validation it ends with the weights of the best epoch, otherwise with the last.

    Parameters
    ----------
    network, train, objective, settings, generator, options
        The fields of ``NetworkFit``.
    """
    fit = NetworkFit(
        network=network, train=train, objective=objective, settings=settings, generator=generator, **options
    )
    return fit_networks([fit])[0]


def fit_networks(fits: Sequence[NetworkFit]) -> list[TrainingState]:
    """Train networks in place. Those that differ in numbers, seeds and data only are trained together, as they would be alone.

    Parameters
    ----------
    fits
        The networks to train; each has its own generator.
    """
    if current_worker.get() is not None:
        fits = [for_this_worker(fit) for fit in fits]
    states: dict[int, TrainingState] = {}
    for indices in ensembles_of(fits):
        fit = fits[indices[0]]
        if len(indices) > 1 or _is_stack_on_device(fit):
            states |= zip(indices, _train_together([fits[index] for index in indices]), strict=True)
        elif stays_on_device(fit) and DeviceTexts.serve(fit.network, fit.train.features):
            # As in training: graphs draw where they drew when they were captured.
            with drawing_from(fit.network, fit.generator):
                texts = DeviceTexts(fit)
            states[indices[0]] = train_network(fit, texts.shuffled_batches)
        else:
            states[indices[0]] = train_network(fit)
    return [states[index] for index in range(len(fits))]


def stays_on_device(fit: NetworkFit) -> bool:
    """Whether batches are cut on the device of the data: on a GPU, where the host would take longer than the step."""
    return fit.generator.device.type == "cuda" and current_worker.get() is None


def _is_stack_on_device(fit: NetworkFit) -> bool:
    return stays_on_device(fit) and isinstance(fit.train.features, Tensor) and stack_shape(fit.network) is not None


def ensembles_of(fits: Sequence[NetworkFit]) -> list[list[int]]:
    """The indices of networks that are trained together: groups of equal size, one after the other, of equal data and seeds."""
    if len(fits) == 1 or current_worker.get() is not None:  # workers share every batch, one network after the other
        return [[index] for index in range(len(fits))]
    similar: list[list[int]] = []
    for index, fit in enumerate(fits):
        matching = next((indices for indices in similar if _can_train_together(fits[indices[0]], fit)), None)
        if matching is None:
            similar.append([index])
        else:
            matching.append(index)
    ensembles: list[list[int]] = []
    for indices in similar:
        by_size: dict[int, list[int]] = {}
        for group in _groups_of(fits, indices):
            by_size.setdefault(len(group), []).extend(group)
        ensembles += by_size.values()
    return ensembles


def _can_train_together(fit: NetworkFit, other: NetworkFit) -> bool:
    if fit.checkpoint is not None or other.checkpoint is not None:
        return False
    shape = stack_shape(fit.network)
    return (
        shape is not None
        and shape == stack_shape(other.network)
        and fit.generator.device == other.generator.device
        and fit.settings.batch_queries == other.settings.batch_queries
        and fit.settings.betas == other.settings.betas
        and len(fit.train.offsets) == len(other.train.offsets)
        and (fit.train.groups is None) == (other.train.groups is None)
        and (fit.train.query_weights is None) == (other.train.query_weights is None)
        and can_merge(fit.objective, other.objective)
        and not _draws_for_long_lists(fit)
        and not _draws_for_long_lists(other)
        and (fit.train is other.train or not stays_on_device(fit) or _have_equal_lengths(fit, other))
    )


def _draws_for_long_lists(fit: NetworkFit) -> bool:
    """Whether the objective draws rankings for the longest list of the data."""
    draws_for = getattr(fit.objective, "draws_for", None)
    return draws_for is not None and bool(draws_for(int(np.diff(fit.train.offsets).max())))


def _have_equal_lengths(fit: NetworkFit, other: NetworkFit) -> bool:
    """Whether the queries of two datasets have the same lengths, so that steps on a device are cut at the same queries."""
    return np.array_equal(np.sort(np.diff(fit.train.offsets)), np.sort(np.diff(other.train.offsets)))


def _groups_of(fits: Sequence[NetworkFit], indices: Sequence[int]) -> list[list[int]]:
    """The indices of equal data and equal states of the generator."""
    groups: dict[tuple[int, bytes], list[int]] = {}
    for index in indices:
        fit = fits[index]
        key = (id(fit.train), fit.generator.get_state().numpy().tobytes())
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def _train_together(fits: Sequence[NetworkFit]) -> list[TrainingState]:
    with ExitStack() as stack:
        for fit in fits:
            stack.enter_context(drawing_from(fit.network, fit.generator))
        stack.enter_context(single_thread_if_small(fits))
        ensemble = Ensemble(fits)
        if fits[0].checkpoint is not None:
            open_checkpoint(fits[0], ensemble.states[0])
        _train(ensemble)
    for fit, state in zip(fits, ensemble.states, strict=True):
        load_best_weights(fit, state)
    return ensemble.states


def _train(ensemble: Ensemble) -> None:
    """Train until every network has finished; where half of them have, the others continue without them."""
    fits, states = ensemble.fits, ensemble.states
    active = [index for index, fit in enumerate(fits) if not has_run_its_epochs(fit, states[index])]
    while active:
        if len(fits) > 1 and 2 * len(active) <= len(fits):
            for smaller in ensemble.split(active):
                _train(smaller)
            return
        means = ensemble.train_epoch()
        ended = [index for index in active if end_epoch(fits[index], states[index], *means[index])]
        active = [index for index in active if index not in ended]
        if active:  # the weights of those that have finished change with the others'
            for index in ended:
                states[index].last_weights = copied_weights(fits[index].network)
    ensemble.stack.release()


class Ensemble:
    """Networks of equal shape in training, all at the same epoch: the members of one stack, which a step moves at once.

    Networks with the same data and seed are a group: they read the same batches and share the bytes of dropout. ``fits`` are in the order
    of ``ensembles_of``; ``states`` are those of networks that have been trained already.
    """

    def __init__(self, fits: Sequence[NetworkFit], states: Sequence[TrainingState] | None = None) -> None:
        self.fits = list(fits)
        groups = _groups_of(fits, range(len(fits)))
        first_of_groups = [fits[group[0]] for group in groups]
        self.trains = [fit.train for fit in first_of_groups]
        self.generators = [fit.generator for fit in first_of_groups]
        self.stack = Stack([fit.network for fit in fits], num_groups=len(groups))
        self.num_networks = self.stack.num_networks  # of a policy
        self._members_per_group = len(fits) // len(groups) * self.num_networks
        self.optimizer = FlatAdamW(self.stack, [fit.settings for fit in fits])
        self.states = list(states or (TrainingState(fit.network, self.optimizer, fit.generator) for fit in fits))
        for state in self.states:
            state.optimizer = self.optimizer
        weight = self.stack.flat.detach()
        self._objective = merged([fit.objective for fit in fits], weight)
        self._sums = EpochSums()
        is_on_device = _is_stack_on_device(self.fits[0])
        self._kernels = (
            KernelNetworks(self.stack)
            if is_on_device and KernelNetworks.serve(self.stack, self.trains[0].features)
            else None
        )
        self._device_batches = self._new_device_batches() if is_on_device else None

    def train_epoch(self) -> list[EpochMeans]:
        """One pass over all queries."""
        for fit in self.fits:
            if not fit.network.training:
                fit.network.train()
        epoch = self.states[0].epoch
        if isinstance(self.fits[0].objective, ScheduledObjective):  # then it is the only one
            self._objective = objective_of_epoch(self.fits[0].objective, self.states[0])
        self._sums.clear()
        num_queries = 0
        if self._device_batches is not None:
            num_queries = len(self.trains[0].offsets) - 1
            self._device_batches.run_epoch(self._step, epoch=epoch)
        else:
            for batch in shuffled_steps(
                self.trains,
                self.fits[0].settings.batch_queries,
                generators=self.generators,
                members_per_group=self._members_per_group,
                num_policies=len(self.fits),
            ):
                self._step(batch)
                self._sums.check_finite(self.fits, epoch)
                num_queries += batch.num_queries
                if all(fit.is_over() for fit in self.fits):
                    break
        self._sums.check_finite(self.fits, epoch)
        return self._sums.means(num_queries)

    def _step(self, batch: StepBatch) -> None:
        if self._kernels is None:
            scores = self.stack.training_scores(batch.features, batch.num_items, generators=self.generators)
        else:
            assert batch.rows is not None
            scores = self._kernels.scores(batch.features, batch.rows, generators=self.generators)
        padded = batch.padded(scores)
        value, slope = value_and_slope(self._objective, padded.detach(), batch.queries, generator=self.generators[0])
        # The loss is a mean over the networks of a policy, and each of them learns as it would alone.
        slope = slope * self.num_networks
        if self._kernels is None:
            gradients = torch.autograd.grad(padded, self.stack.weights, slope)
            gradient = torch.cat([gradient.reshape(-1) for gradient in gradients])
        else:
            gradient = self._kernels.gradient(slope.view_as(scores))
        self.optimizer.step(gradient)
        self._sums.add(value, batch.num_queries)

    def _new_device_batches(self) -> DeviceBatches:
        first = self.fits[0]
        reward = getattr(first.objective, "reward", None)
        batches = DeviceBatches(
            self.trains,
            first.settings.batch_queries,
            generators=self.generators,
            members_per_group=self._members_per_group,
            num_policies=len(self.fits),
            reward=reward if getattr(reward, "is_additive", False) else None,
            gathers=self._kernels is None,
        )
        if first.train.labels.is_cuda:
            if hasattr(first.objective, "per_policy"):
                batches.capture(self._step, self.optimizer.changing_tensors())
            else:
                logger.info("training runs without a CUDA graph: %s changes on its way", type(first.objective).__name__)
        return batches

    def split(self, indices: Sequence[int]) -> list[Ensemble]:
        """Ensembles of some of the networks, without the others, each of groups of equal size."""
        per_group = len(self.fits) // len(self.trains)
        groups = [[index for index in indices if index // per_group == group] for group in range(len(self.trains))]
        for index in indices:  # only the first generator of a group has been drawn from
            self.fits[index].generator.set_state(self.generators[index // per_group].get_state())
        self.stack.release()
        ensembles = []
        for size in sorted({len(group) for group in groups} - {0}):
            remaining = [index for group in groups if len(group) == size for index in group]
            smaller = Ensemble([self.fits[index] for index in remaining], [self.states[index] for index in remaining])
            members = [index * self.num_networks + number for index in remaining for number in range(self.num_networks)]
            smaller.optimizer.continue_from(self.optimizer, members)
            ensembles.append(smaller)
        return ensembles
