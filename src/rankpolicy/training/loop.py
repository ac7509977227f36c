"""The training of one network, from its first batch to its best weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from rankpolicy.arrays import Array, Generator, detached, is_tensor, namespace, on_host
from rankpolicy.data.batches import Batch
from rankpolicy.data.rows import NetworkRows
from rankpolicy.models.linear_networks import LinearNetworks
from rankpolicy.objectives.value import Objective, ObjectiveValue, ScheduledObjective
from rankpolicy.training.checkpoint import open_checkpoint, write_checkpoint
from rankpolicy.training.data_parallel import current_worker, decided_by_first, for_this_worker, sum_over_workers
from rankpolicy.training.linear_step import LinearStep
from rankpolicy.training.network_fit import Network, NetworkFit, TrainingState, Validation
from rankpolicy.types import RankPolicyError

_LOSS, _REPORT = "the loss", "the report"  # next to the names of parts
EpochMeans = tuple[float, dict[str, float]]  # of a policy: the mean report, and the means of the parts by name


class Step(Protocol):
    """How a kind of network takes its steps."""

    optimizer: Any

    def running(self) -> AbstractContextManager[None]:
        """What holds while steps are taken."""

    def __call__(self, objective: Objective, batch: Batch, generator: Generator) -> ObjectiveValue:
        """Move the weights along the gradient of the loss of a batch."""


def train_network(fit: NetworkFit, batches_of_epoch: Callable[[int], Iterable[Batch]] | None = None) -> TrainingState:
    """Train a network in place; with validation it ends with the weights of the best epoch, otherwise with the last.

    ``batches_of_epoch`` gives the batches of an epoch by its number, from 0; None cuts them out of the training data.
    """
    if isinstance(fit.network, LinearNetworks) and current_worker.get() is not None:
        fit = for_this_worker(fit)
    step = _step_of(fit)
    state = TrainingState(fit.network, step.optimizer, fit.generator)
    with step.running():
        if fit.checkpoint is not None:
            open_checkpoint(fit, state)
        is_finished = has_run_its_epochs(fit, state)
        while not is_finished:
            batches = (
                fit.train.shuffled_batches(fit.settings.batch_queries, generator=fit.generator)
                if batches_of_epoch is None
                else batches_of_epoch(state.epoch)
            )
            is_finished = end_epoch(fit, state, *_train_epoch(fit, state, step, batches))
    load_best_weights(fit, state)
    return state


def _step_of(fit: NetworkFit) -> Step:
    if isinstance(fit.network, LinearNetworks):
        return LinearStep(fit.network, fit.settings)
    from rankpolicy.training.module_step import ModuleStep

    return ModuleStep(fit)


def _train_epoch(fit: NetworkFit, state: TrainingState, step: Step, batches: Iterable[Batch]) -> EpochMeans:
    """Take a step on each batch."""
    objective = objective_of_epoch(fit.objective, state)
    sums, num_queries = EpochSums(), 0
    for batch in batches:
        value = step(objective, batch, fit.generator)
        sums.add(value, batch.num_queries_of_step)
        num_queries += batch.num_queries_of_step
        if on_host(value.loss):  # a look at the loss would wait for a GPU
            sums.check_finite([fit], state.epoch)
        if current_worker.get() is None and fit.is_over():  # several workers take the same number of steps
            break
    sums.check_finite([fit], state.epoch)
    return sums.means(num_queries)[0]


def end_epoch(fit: NetworkFit, state: TrainingState, report: float, part_means: Mapping[str, float]) -> bool:
    """Record an epoch, validate, write the checkpoint, and tell the caller of the fit; returns whether training is finished."""
    state.epoch += 1
    state.reports.append(report)
    for name, mean in part_means.items():
        state.parts.setdefault(name, []).append(mean)
    latest = {fit.objective.report_name: report}
    if fit.validation is not None:
        score = _validation_score(state.network, fit.validation)
        state.scores.append(score)
        if score > state.best_score:
            state.best_score, state.best_epoch = score, state.epoch
            state.best_weights = copied_weights(state.network)
        latest[f"validation {fit.validation.name}"] = score
    for name, validation in fit.other_validations.items():
        state.other_scores.setdefault(name, []).append(_validation_score(state.network, validation))
        latest[f"{name} {validation.name}"] = state.other_scores[name][-1]
    worker = current_worker.get()
    if fit.checkpoint is not None and (worker is None or worker.is_first):
        write_checkpoint(fit, state)
    is_stopped = fit.report_epoch is not None and bool(fit.report_epoch(state.epoch, latest))
    if worker is not None:
        is_stopped = decided_by_first(is_stopped)
    return is_stopped or has_run_its_epochs(fit, state)


def has_run_its_epochs(fit: NetworkFit, state: TrainingState) -> bool:
    """Whether all epochs are done, or the last ``patience`` of them did not help on validation data."""
    if state.epoch >= fit.settings.epochs:
        return True
    patience = fit.settings.patience
    return fit.validation is not None and patience is not None and state.epoch - state.best_epoch >= patience


def load_best_weights(fit: NetworkFit, state: TrainingState) -> None:
    """Leave the network with the weights that training ends with, ready to score."""
    weights = state.best_weights or state.last_weights
    if weights:
        fit.network.load_state_dict(weights)
    if not isinstance(fit.network, LinearNetworks):
        fit.network.eval()


def objective_of_epoch(objective: Objective, state: TrainingState) -> Objective:
    """What is minimised in the next epoch."""
    return objective.at_epoch(state.epoch, state.parts) if isinstance(objective, ScheduledObjective) else objective


def copied_weights(network: Network) -> dict[str, Array]:
    weights = network.state_dict().items()
    return {name: weight.detach().clone() if is_tensor(weight) else weight.copy() for name, weight in weights}


def scores_without_gradients(network: Network, rows: NetworkRows) -> Array:
    """Flat scores (item,) of what a network reads, without dropout."""
    if isinstance(network, LinearNetworks):
        return network.scores(rows)
    import torch

    from rankpolicy.models.average import scores_of_all

    network.eval()
    with torch.no_grad():
        return scores_of_all(network, rows)


def _validation_score(network: Network, validation: Validation) -> float:
    score = validation.score(scores_without_gradients(network, validation.features))
    if math.isnan(score):
        raise RankPolicyError(
            f"the validation metric {validation.name!r} must give a number; it gave NaN. Check the metric and the validation labels."
        )
    return score


class EpochSums:
    """Sums over the queries of an epoch of what an objective reports for each policy.

    They stay on the device, so that no step waits for it, and in the same memory, to which CUDA graphs add.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Array] = {}

    def clear(self) -> None:
        for total in self._sums.values():
            total[...] = 0

    def add(self, value: ObjectiveValue, num_queries: int) -> None:
        for name, number in ((_LOSS, detached(value.loss)), (_REPORT, value.report), *value.parts.items()):
            if name not in self._sums:
                self._sums[name] = namespace(number).zeros_like(number)
            self._sums[name] += number * num_queries

    def check_finite(self, fits: Sequence[NetworkFit], epoch: int) -> None:
        """Refuse to continue with a loss that is not finite; ``fits`` are the policies, ``epoch`` is how many epochs are done."""
        loss, report = self._sums[_LOSS], self._sums[_REPORT]
        if math.isfinite(float(loss.sum() + report.sum())):
            return
        xp = namespace(loss)
        is_wrong = ~(xp.isfinite(loss) & xp.isfinite(report)).reshape(-1)
        policy = int(xp.nonzero(is_wrong)[0][0]) if is_wrong.any() else 0
        raise RankPolicyError(
            f"training stopped in epoch {epoch + 1}: the loss is not finite ({float(loss.reshape(-1)[policy]):g}). "
            f"Lower learning_rate (now {fits[policy].settings.learning_rate:g}), scale the features (scaling='standardize'), "
            "or map labels to small grades."
        )

    def means(self, num_queries: int) -> list[EpochMeans]:
        """The means of each policy."""
        if current_worker.get() is not None:
            sum_over_workers(list(self._sums.values()))
        sums = [total.reshape(-1) for name, total in self._sums.items() if name != _LOSS]
        totals = namespace(*sums).stack(sums)
        names = [name for name in self._sums if name not in (_LOSS, _REPORT)]
        of_policies = (totals / num_queries).T.tolist()
        return [(report, dict(zip(names, parts, strict=True))) for report, *parts in of_policies]
