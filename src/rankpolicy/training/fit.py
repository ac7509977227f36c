"""The fit loop of all networks."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rankpolicy.data.batches import RaggedTensors
from rankpolicy.models.average import scores_of_all
from rankpolicy.models.layers import drawing_from
from rankpolicy.objectives.value import Objective
from rankpolicy.training.checkpoint import check_place, read_checkpoint, write_checkpoint
from rankpolicy.training.data_parallel import decided_by_first, for_this_worker, is_first_worker
from rankpolicy.training.network_fit import NetworkFit, TrainingSettings, TrainingState, Validation
from rankpolicy.training.together import Training, copied_weights, stacks_of
from rankpolicy.types import RankPolicyError

_FEW_PARAMETERS = 500_000
_FEW_PRODUCTS = 100_000_000  # of a weight and an activation in one step


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
        The networks to train; each has a generator of its own.
    """
    fits = [for_this_worker(fit) for fit in fits]
    states: dict[int, TrainingState] = {}
    for places in stacks_of(fits):
        chosen = [fits[place] for place in places]
        states |= zip(places, _fit_stack(chosen), strict=True)
    return [states[place] for place in range(len(fits))]


def _fit_stack(fits: Sequence[NetworkFit]) -> list[TrainingState]:
    with ExitStack() as stack:
        for fit in fits:
            stack.enter_context(drawing_from(fit.network, fit.generator))
        stack.enter_context(_single_thread_if_small(fits))
        training = Training.of(fits)
        states = training.states
        first = fits[0]
        if first.checkpoint is not None:
            purpose = _purpose(first)
            if first.resume:
                _resume(first.checkpoint, states[0], purpose=purpose, data=first.data)
            check_place(first.checkpoint, purpose=purpose, data=first.data, resume=first.resume)
        _train(training)
    for fit, state in zip(fits, states, strict=True):
        weights = state.best_weights or state.last_weights
        if weights:
            fit.network.load_state_dict(weights)
        fit.network.eval()
    return states


def _train(training: Training) -> None:
    """Train until every network has finished; where half of them have, the others go on without them."""
    active = [place for place, fit in enumerate(training.fits) if not _is_finished(training.states[place], fit)]
    while active:
        if len(training.fits) > 1 and 2 * len(active) <= len(training.fits):
            for part in training.split(active):
                _train(part)
            return
        training.train_epoch()
        ended = {place for place in active if _ends(training, place)}
        active = [place for place in active if place not in ended]
        if active:  # the weights of those that have finished change with the others'
            for place in ended:
                training.states[place].last_weights = copied_weights(training.fits[place].network)
    training.release()


def _ends(training: Training, place: int) -> bool:
    """Whether a network has finished after this epoch; validates and reports it."""
    fit, state = training.fits[place], training.states[place]
    state.reports.append(training.reports[place])
    for name, part in training.parts.items():
        state.parts.setdefault(name, []).append(part[place])
    latest = {fit.objective.report_name: state.reports[-1]}
    if fit.validation is not None:
        _validate(state, fit.validation)
        latest[f"validation {fit.validation.name}"] = state.scores[-1]
    for name, other in fit.other_validations.items():
        state.other_scores.setdefault(name, []).append(_score(state.network, other))
        latest[f"{name} {other.name}"] = state.other_scores[name][-1]
    if fit.checkpoint is not None and is_first_worker():
        write_checkpoint(fit.checkpoint, state, purpose=_purpose(fit), data=fit.data)
    is_stopped = decided_by_first(fit.report_epoch is not None and bool(fit.report_epoch(state.epoch, latest)))
    return is_stopped or _is_finished(state, fit)


def _resume(checkpoint: Path, state: TrainingState, *, purpose: str, data: str) -> None:
    """Continue from a checkpoint; where there is none, say so, because the same command may be meant to start and to continue."""
    if os.path.exists(checkpoint):
        read_checkpoint(checkpoint, state, purpose=purpose, data=data)
    else:
        warnings.warn(f"nothing to resume: {checkpoint} does not exist. Training starts afresh.", stacklevel=6)


def _validate(state: TrainingState, validation: Validation) -> None:
    score = _score(state.network, validation)
    state.scores.append(score)
    if score > state.best_score:
        state.best_score, state.best_epoch = score, state.epoch
        state.best_weights = copied_weights(state.network)


def _score(network: nn.Module, validation: Validation) -> float:
    network.eval()
    with torch.no_grad():
        score = validation.score(scores_of_all(network, validation.features))
    if math.isnan(score):
        raise RankPolicyError(
            f"the validation metric {validation.name!r} must give a number; it gave NaN. Check the metric and the validation labels."
        )
    return score


def _is_finished(state: TrainingState, fit: NetworkFit) -> bool:
    if state.epoch >= fit.settings.epochs:
        return True
    patience = fit.settings.patience
    return fit.validation is not None and patience is not None and state.epoch - state.best_epoch >= patience


def _purpose(fit: NetworkFit) -> str:
    """What must not change between a checkpoint and its resumption; how long to train may."""
    objective, settings = fit.objective, fit.settings
    reward = getattr(getattr(objective, "reward", None), "name", "")
    how = {each.name: getattr(settings, each.name) for each in fields(settings)}
    how = {name: value for name, value in how.items() if name not in ("epochs", "patience")}
    if is_dataclass(objective):
        values = {each.name: getattr(objective, each.name) for each in fields(objective)}
        how |= {
            name: value
            for name, value in values.items()
            if name not in ("epoch", "report_name") and (value is None or isinstance(value, int | float | str))
        }
    listed = ", ".join(f"{name}={value}" for name, value in how.items())
    return f"{type(objective).__name__}({reward}) with {listed}, validation {fit.validation.name if fit.validation else 'none'}"


@contextmanager
def _single_thread_if_small(fits: Sequence[NetworkFit]) -> Iterator[None]:
    """Use one torch thread for small matrices, which are done before a second thread has started."""
    before = torch.get_num_threads()
    train = fits[0].train
    num_parameters = sum(parameter.numel() for fit in fits for parameter in fit.network.parameters())
    items_per_batch = len(train.labels) / (len(train.offsets) - 1) * fits[0].settings.batch_queries
    if num_parameters < _FEW_PARAMETERS and num_parameters * items_per_batch < _FEW_PRODUCTS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
